import BusKit
import PodcastModel
import WireMessages

/// The player behind a screen: keys and news in, tasks and what to show out. Pure.
struct PlayerMachine: Sendable {
    /// What a key led to.
    enum Outcome: Sendable, Hashable {
        /// Nothing more.
        case none
        /// Ask a service.
        case ask(PlayerTask)
        /// Leave.
        case quit
    }

    private var view = FleetView()
    private var selection: String?
    private var list = PlayerScreen.List.queue
    private var chapterSelection: Int?
    private var notice: String?
    private var noticeUntil: MonotonicTime?
    private var seeks = KeyRepeatCoalescer<Double>()
    private var speeds = KeyRepeatCoalescer<Double>()
    private var volumes = KeyRepeatCoalescer<Double>()
    private var command: PlayerIntent?
    private let settings: Settings
    private let bootID: String

    /// How long a notice stays.
    static let noticeTime = Duration.seconds(6)

    /// A player that knows nothing yet.
    init(settings: Settings, bootID: String) {
        self.settings = settings
        self.bootID = bootID
    }

    /// What is to be shown at `now`. What keys have asked for is shown at once, as it will be.
    func screen(at now: Moment) -> PlayerScreen {
        var snapshot = snapshot(at: now)
        if let target = seeks.target, seeks.subject == snapshot.loadID { snapshot.position = target }
        if let target = speeds.target { snapshot.speed = target }
        if let target = volumes.target { snapshot.volume = target }
        return PlayerScreen(
            snapshot: snapshot, selection: selection, notice: notice, list: list, chapterSelection: chapterSelection)
    }

    /// When the screen next changes by itself, in seconds from `now`; nil: it does not.
    func nextChange(after now: Moment) -> Double? {
        let tick = snapshot(at: now).nextTick
        let end = noticeUntil.map { max(0.01, $0.since(now.monotonic) / .seconds(1)) }
        return [tick, end].compactMap { $0 }.min()
    }

    private func snapshot(at now: Moment) -> PlayerSnapshot {
        PlayerSnapshot(view, now: now, bootID: bootID)
    }

    /// The stream has news.
    mutating func apply(_ update: ReplicaUpdate) {
        let load = view.player?.loadID
        view.apply(update)
        if view.player?.loadID != load { chapterSelection = nil }
    }

    /// Time has passed.
    mutating func tick(now: Moment) {
        guard let noticeUntil, now.monotonic >= noticeUntil else { return }
        self.noticeUntil = nil
        notice = nil
    }

    /// A key was pressed.
    mutating func press(_ key: PlayerKey, now: Moment) -> Outcome {
        let screen = screen(at: now)
        let values = SettingValues(view.settings, settings: settings)
        let podcast = view.player?.episode.podcastID ?? ""
        let intent = screen.intent(
            for: key, forward: values.number(.skipForward, podcast: podcast),
            back: values.number(.skipBack, podcast: podcast))
        guard let intent else { return .none }
        let snapshot = snapshot(at: now)
        switch intent {
        case .quit: return .quit
        case .select(let id):
            selection = id
            return .none
        case .selectChapter(let index):
            chapterSelection = index
            return .none
        case .switchList:
            list = list == .queue ? .chapters : .queue
            chapterSelection = nil
            return .none
        case .describe:
            let entry = screen.selectedIndex.map { screen.snapshot.entries[$0] }
            say(Sentence.everything(screen.snapshot, selection: entry), now: now)
            return .none
        case .seek(let delta):
            let duration = snapshot.duration
            let target = seeks.press(subject: snapshot.loadID, from: snapshot.position) { position in
                let place = try? SeekExpression.relative(delta).target(from: position, duration: duration)
                return place?.seconds ?? position
            }
            return target.map { .ask(.seek(load: snapshot.loadID, to: $0)) } ?? .none
        case .chapter(let target):
            guard let player = view.player else { return .none }
            // From where the keys before it lead to, so that held down it goes on.
            let place = seeks.subject == snapshot.loadID ? seeks.target ?? snapshot.position : snapshot.position
            do throws(Failure) {
                let start = player.chapters[try target.number(in: player, at: place) - 1].start
                let wanted = seeks.press(subject: snapshot.loadID, from: snapshot.position) { _ in start }
                return wanted.map { .ask(.seek(load: snapshot.loadID, to: $0)) } ?? .none
            } catch {
                say(error.message, now: now)
                return .none
            }
        case .speed(let level):
            let step = settings.speedStep
            let target = speeds.press(subject: "", from: snapshot.speed) {
                level.level(from: $0, step: step, range: PlaybackSpeed.range)
            }
            return target.map { .ask(.speed($0)) } ?? .none
        case .volume(let level):
            let step = settings.volumeStep
            let target = volumes.press(subject: "", from: snapshot.volume) {
                level.level(from: $0, step: step, range: Volume.range)
            }
            return target.map { .ask(.volume($0)) } ?? .none
        default:
            // A key held down must not pause and resume, or run through the queue.
            guard command == nil else { return .none }
            command = intent
            return .ask(.command(intent))
        }
    }

    /// What a key asked for is done, or has failed; gives what is to be asked for next.
    mutating func finished(_ task: PlayerTask, _ failure: Failure?, now: Moment) -> Outcome {
        if let failure { say(failure.message, now: now) }
        switch task {
        case .seek:
            if failure != nil { seeks.dropWaiting() }
            // What waits was aimed at in this episode, whatever plays by now.
            let load = seeks.subject
            return seeks.finished().map { .ask(.seek(load: load, to: $0)) } ?? .none
        case .speed:
            if failure != nil { speeds.dropWaiting() }
            return speeds.finished().map { .ask(.speed($0)) } ?? .none
        case .volume:
            if failure != nil { volumes.dropWaiting() }
            return volumes.finished().map { .ask(.volume($0)) } ?? .none
        case .command(let intent):
            command = nil
            guard failure == nil else { return .none }
            switch intent {
            case .remove: say("Removed; u brings it back.", now: now)
            case .bookmark(_, let position): say("Bookmarked at \(TimeText.clock(position)).", now: now)
            case .sleep(let request):
                // As it was asked for: the stream may not have told it yet.
                say(Sentence.capitalised(Sentence.sleep(.init(request)) + "."), now: now)
            default: break
            }
            return .none
        }
    }

    /// What the last key led to, once, for a player that says it.
    mutating func takeNotice() -> String? {
        defer {
            notice = nil
            noticeUntil = nil
        }
        return notice
    }

    private mutating func say(_ text: String, now: Moment) {
        notice = DisplayText.sanitised(text)
        noticeUntil = now.monotonic.advanced(by: Self.noticeTime)
    }
}

import BusKit
import LockstepClient
import PodcastModel
import WireMessages

/// The player behind a screen: keys and news in, tasks and what to show out. Pure.
struct PlayerMachine: Sendable {
    /// How the player is shown.
    enum Form: Sendable {
        /// On the whole screen, with a list to select in.
        case screen
        /// On one line.
        case line
        /// As lines of words, which tell every change.
        case words
    }

    /// What a key led to.
    enum Outcome: Sendable, Hashable {
        case none
        /// Ask a service.
        case ask(PlayerTask)
        case quit
    }

    private var view = FleetView()
    private var selection: String?
    private var list = PlayerScreen.List.queue
    private var chapterSelection: Int?
    private var notice: String?
    private var noticeUntil: MonotonicTime?
    private var noticeNumber = 0
    /// The notice stays until the next key.
    private var isDescribing = false
    private var seeks = KeyRepeatCoalescer<Double>()
    private var speeds = KeyRepeatCoalescer<Double>()
    private var volumes = KeyRepeatCoalescer<Double>()
    private var alertKeys = AlertKeys()
    private var command: PlayerIntent?
    /// What was pressed while a command was under way, in order.
    private var waiting: [PlayerIntent] = []
    private let settings: Settings
    private let bootID: String
    private let form: Form
    private let advice: AdvisedCommands

    /// How long a notice stays.
    static let noticeTime = Duration.seconds(6)
    /// The maximum number of commands that wait for the one under way.
    static let waitingLimit = 9

    /// A player that knows nothing yet.
    init(settings: Settings, bootID: String, form: Form = .screen, advice: AdvisedCommands = .plain) {
        self.settings = settings
        self.bootID = bootID
        self.form = form
        self.advice = advice
    }

    /// What is to be shown at `now`. What keys have asked for is shown at once, as it will be.
    func screen(at now: Moment) -> PlayerScreen {
        var snapshot = snapshot(at: now)
        if let target = seeks.target, seeks.subject == snapshot.loadID { snapshot.position = target }
        if let target = speeds.target { snapshot.speed = target }
        if let target = volumes.target { snapshot.volume = target }
        return PlayerScreen(
            snapshot: snapshot, selection: selection, notice: notice, noticeNumber: noticeNumber,
            hasList: form == .screen, list: list, chapterSelection: chapterSelection)
    }

    /// When the screen next changes by itself, in seconds from `now`; nil: it does not.
    func nextChange(after now: Moment) -> Double? {
        let tick = snapshot(at: now).nextTick
        let due = [noticeUntil, alertKeys.nextRelease].compactMap { $0 }.min()
        let end = due.map { max(0.01, $0.since(now.monotonic) / .seconds(1)) }
        return [tick, end].compactMap { $0 }.min()
    }

    /// When the next digit of an alert becomes free; nil: none is kept back.
    var nextDigit: MonotonicTime? { alertKeys.nextRelease }

    /// What is known at `now`, with the digits of the alerts.
    func snapshot(at now: Moment) -> PlayerSnapshot {
        var snapshot = PlayerSnapshot(view, now: now, bootID: bootID)
        snapshot.alerts = alertKeys.applied(to: snapshot.alerts)
        for index in snapshot.alerts.indices {
            snapshot.alerts[index].message = advice.completed(snapshot.alerts[index].message)
        }
        snapshot.error = snapshot.error.map(advice.completed)
        return snapshot
    }

    /// The stream has news.
    mutating func apply(_ update: ReplicaUpdate) {
        let load = view.player?.loadID
        let entries = view.playingQueue.entries.map(\.id)
        view.apply(update)
        keepSelection(among: entries)
        guard view.player?.loadID != load else { return }
        chapterSelection = nil
        // What was described is gone.
        if isDescribing { dismissNotice() }
    }

    /// The screen is about to be shown: notices end, and new alerts get digits.
    mutating func tick(now: Moment) {
        alertKeys.update(PlayerSnapshot(view, now: now, bootID: bootID).alerts, now: now.monotonic)
        guard let noticeUntil, now.monotonic >= noticeUntil else { return }
        dismissNotice()
    }

    private mutating func dismissNotice() {
        notice = nil
        noticeUntil = nil
        isDescribing = false
    }

    /// Something was typed that is no key.
    mutating func refuse(_ text: String, now: Moment) {
        dismissNotice()
        say(PlayerHelp.unknown(text), now: now)
    }

    /// A key was pressed.
    mutating func press(_ key: PlayerKey, now: Moment) -> Outcome {
        // What an earlier key led to would hide what this one does.
        dismissNotice()
        let screen = screen(at: now)
        let values = SettingValues(view.settings, settings: settings)
        let podcast = view.player?.episode.podcastID ?? ""
        let intent = screen.intent(
            for: key, forward: values.number(.skipForward, podcast: podcast),
            back: values.number(.skipBack, podcast: podcast))
        guard screen.snapshot.link == .live || !intent.needsFleet else {
            say("Not connected to the fleet; the key was ignored.", now: now)
            return .none
        }
        switch intent {
        case .quit: return .quit
        case .seek, .chapter: return seek(intent, now: now)
        case .speed, .volume: return change(intent, now: now)
        case .say(let text): say(text, now: now)
        case .listKeys: describe(PlayerHelp.sentence(hasList: screen.hasList), now: now)
        case .describe: describe(Sentence.everything(screen.snapshot, selection: screen.selectedName), now: now)
        case .select(let id): selection = id
        case .selectChapter(let index): chapterSelection = index
        case .switchList:
            list = list == .queue ? .chapters : .queue
            chapterSelection = nil
        default: return begin(intent, screen, now: now)
        }
        return .none
    }

    /// An entry that was selected and has gone gives the selection to the one behind it, else to the one before.
    private mutating func keepSelection(among before: [String]) {
        guard let selection, let index = before.firstIndex(of: selection) else { return }
        let now = Set(view.playingQueue.entries.map(\.id))
        guard !now.isEmpty, !now.contains(selection) else { return }
        self.selection = before[index...].first(where: now.contains) ?? before[..<index].last(where: now.contains)
    }

    /// Asks for a command, or keeps it until the one under way is done.
    private mutating func begin(_ intent: PlayerIntent, _ screen: PlayerScreen, now: Moment) -> Outcome {
        if case .remove(let entry, _) = intent {
            // The next press is about the next row, also before the stream has told that this one has gone.
            let ids = screen.snapshot.entries.map(\.id)
            let index = ids.firstIndex(of: entry) ?? 0
            selection = ids.dropFirst(index + 1).first ?? ids[..<index].last
        }
        guard command != nil else {
            command = intent
            return .ask(.command(intent))
        }
        guard let intent = intent.behindAnother else {
            say("The last key is still being carried out; this one was ignored.", now: now)
            return .none
        }
        guard waiting.count < Self.waitingLimit else {
            say("\(Self.waitingLimit) keys are waiting; this one was ignored.", now: now)
            return .none
        }
        waiting.append(intent)
        return .none
    }

    /// Goes to another place, from where the keys before it lead to, so that held down it goes on.
    private mutating func seek(_ intent: PlayerIntent, now: Moment) -> Outcome {
        let snapshot = snapshot(at: now)
        let wanted: Double?
        switch intent {
        case .seek(let delta):
            wanted = seeks.press(subject: snapshot.loadID, from: snapshot.position) { position in
                let place = try? SeekExpression.relative(delta).target(from: position, duration: snapshot.duration)
                return place?.seconds ?? position
            }
        case .chapter(let target):
            guard let player = view.player else { return .none }
            let place = seeks.subject == snapshot.loadID ? seeks.target ?? snapshot.position : snapshot.position
            do throws(Failure) {
                let start = player.chapters[try target.number(in: player, at: place) - 1].start
                wanted = seeks.press(subject: snapshot.loadID, from: snapshot.position) { _ in start }
            } catch {
                say(error.message, now: now)
                return .none
            }
        default: return .none
        }
        return wanted.map { .ask(.seek(load: snapshot.loadID, to: $0)) } ?? .none
    }

    /// Changes speed or volume, by steps from where the keys before it lead to.
    private mutating func change(_ intent: PlayerIntent, now: Moment) -> Outcome {
        let snapshot = snapshot(at: now)
        switch intent {
        case .speed(let level):
            let wanted = speeds.press(subject: "", from: snapshot.speed) { [settings] in
                level.level(from: $0, step: settings.speedStep, range: PlaybackSpeed.range)
            }
            return wanted.map { .ask(.speed($0)) } ?? .none
        case .volume(let level):
            let wanted = volumes.press(subject: "", from: snapshot.volume) { [settings] in
                level.level(from: $0, step: settings.volumeStep, range: Volume.range)
            }
            return wanted.map { .ask(.volume($0)) } ?? .none
        default: return .none
        }
    }

    /// What a key asked for is done, or has failed; gives what is to be asked for next.
    ///
    /// - Parameter said: what the service has said of it, for people.
    mutating func finished(_ task: PlayerTask, _ failure: Failure?, said: String? = nil, now: Moment) -> Outcome {
        if let text = failure?.message ?? said { say(text, now: now) }
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
            guard failure == nil else {
                waiting = []
                return .none
            }
            switch intent {
            case .remove: say("Removed; u brings it back.", now: now)
            case .bookmark(_, let position): say("Bookmarked at \(ClockText.format(position)).", now: now)
            case .sleep(let request) where form != .words:
                // As it was asked for: the stream may not have told it yet.
                say(Sentence.capitalised(Sentence.sleep(.init(request)) + "."), now: now)
            default: break
            }
            guard !waiting.isEmpty else { return .none }
            let next = waiting.removeFirst()
            command = next
            return .ask(.command(next))
        }
    }

    /// What the last key led to, once, for a player that says it.
    mutating func takeNotice() -> String? {
        defer { dismissNotice() }
        return notice
    }

    private mutating func say(_ text: String, now: Moment) {
        notice = DisplayText.sanitised(advice.completed(text))
        noticeNumber += 1
        noticeUntil = now.monotonic.advanced(by: Self.noticeTime)
        isDescribing = false
    }

    /// Says what takes longer to read: where there is room for it, it stays until the next key.
    private mutating func describe(_ text: String, now: Moment) {
        say(text, now: now)
        guard form == .screen else { return }
        isDescribing = true
        noticeUntil = nil
    }
}

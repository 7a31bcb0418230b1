import LockstepClient
import PodcastModel

/// Decides the tasks and screens of a player from keys and fleet states, without I/O.
struct PlayerMachine: Sendable {
    enum Presentation: Sendable {
        /// The whole screen, with a list to select from.
        case fullScreen
        case singleLine
        /// One line of plain text for each change.
        case plainText
    }

    enum Outcome: Sendable, Hashable {
        case none
        /// A request to a service must be sent.
        case ask(PlayerTask)
        case quit
    }

    /// The state; nil before it is known.
    private(set) var state: FleetState?
    private var selection: QueueEntryID?
    private var list = PlayerScreen.List.queue
    private var chapterSelection: Int?
    private var notice: String?
    private var noticeUntil: MonotonicTime?
    private var noticeNumber = 0
    /// Whether the notice stays until the next key.
    private var isDescribing = false
    private var seeks = KeyRepeatCoalescer()
    private var speeds = KeyRepeatCoalescer()
    private var volumes = KeyRepeatCoalescer()
    private var alertKeys = AlertKeys()
    private var command: PlayerIntent?
    /// The requests that wait for the command in flight.
    private var waiting: [PlayerIntent] = []
    /// The library’s pages; nil if the player has none.
    private(set) var library: LibraryPages?
    private var narrator = LibraryNarrator()
    private let settings: Settings
    private let presentation: Presentation
    private let advice: AdvisedCommands

    static let noticeTime = Duration.seconds(6)
    static let waitingLimit = 9

    init(
        settings: Settings, presentation: Presentation = .fullScreen, hasPages: Bool = false,
        advice: AdvisedCommands = .plain
    ) {
        library = hasPages ? LibraryPages() : nil
        (self.settings, self.presentation, self.advice) = (settings, presentation, advice)
    }

    /// The screen at `now`. Values that keys have requested are shown at once.
    func screen(at now: Moment) -> PlayerScreen {
        var snapshot = snapshot(at: now)
        if let target = seeks.target, seeks.subject == snapshot.player.loadID { snapshot.position = target }
        if let target = speeds.target { snapshot.speed = target }
        if let target = volumes.target { snapshot.volume = target }
        return PlayerScreen(
            snapshot: snapshot, selection: selection, notice: notice, noticeNumber: noticeNumber,
            hasList: presentation == .fullScreen, list: list, chapterSelection: chapterSelection,
            library: library, advice: advice)
    }

    /// The time in seconds until the screen changes without an update; nil if it doesn’t.
    func nextChange(after now: Moment) -> Double? {
        let tick = snapshot(at: now).nextTick
        let due = [noticeUntil, alertKeys.nextRelease, nextLoadTime].compactMap { $0 }.min()
        let end = due.map { max(0.01, $0.since(now.monotonic) / .seconds(1)) }
        return [tick, end].compactMap { $0 }.min()
    }

    /// The time at which rows of a page are read again; nil if they are current.
    var nextLoadTime: MonotonicTime? {
        guard case .live? = state?.connection, let list = library?.view?.list, !list.isLoading else { return nil }
        return list.refreshTime
    }

    /// Returns the next request for rows of a page; nil if none is due.
    mutating func nextLoad(now: Moment) -> PlayerTask? {
        guard case .live? = state?.connection else { return nil }
        return library?.nextLoad(now: now.monotonic).map(PlayerTask.library)
    }

    var nextDigit: MonotonicTime? { alertKeys.nextRelease }

    /// The snapshot at `now`, with the digits of the alerts.
    func snapshot(at now: Moment) -> PlayerSnapshot {
        var snapshot = plainSnapshot(at: now)
        snapshot.alerts = alertKeys.applied(to: snapshot.alerts)
        for index in snapshot.alerts.indices {
            snapshot.alerts[index].message = advice.completed(snapshot.alerts[index].message)
        }
        snapshot.error = snapshot.error.map(advice.completed)
        return snapshot
    }

    private func plainSnapshot(at now: Moment) -> PlayerSnapshot {
        state.map { PlayerSnapshot($0, now: now) } ?? PlayerSnapshot()
    }

    mutating func apply(_ state: FleetState) {
        let before = self.state
        self.state = state
        keepSelection(from: before?.upNext.entries ?? [], to: state.upNext.entries)
        guard state.player.loadID != before?.player.loadID else { return }
        chapterSelection = nil
        // The described episode is no longer loaded.
        if isDescribing { dismissNotice() }
    }

    /// Applies an update, whose changes may concern the library’s pages.
    mutating func apply(_ update: FleetUpdate, now: Moment) {
        apply(update.state)
        library?.apply(update.state, update.changes, now: now.monotonic)
    }

    /// Removes expired notices, and assigns digits to new alerts, before the next frame.
    mutating func tick(now: Moment) {
        alertKeys.update(plainSnapshot(at: now).alerts, now: now.monotonic)
        guard let noticeUntil, now.monotonic >= noticeUntil else { return }
        dismissNotice()
    }

    private mutating func dismissNotice() {
        notice = nil
        noticeUntil = nil
        isDescribing = false
    }

    mutating func refuse(_ text: String, now: Moment) {
        dismissNotice()
        say(PlayerHelp.unknown(text), now: now)
    }

    mutating func press(_ key: PlayerKey, now: Moment) -> Outcome {
        dismissNotice()
        if let outcome = pressPage(key, now: now) { return outcome }
        // Escape alone only closes what is open.
        if key == .escape { return .none }
        let screen = screen(at: now)
        let snapshot = screen.snapshot
        let values = (state?.settings ?? SettingValues([:])).with(file: settings.skipDistances)
        let podcast = snapshot.episode?.podcastID
        let intent = screen.intent(
            for: key, forward: values.number(.skipForward, for: podcast), back: values.number(.skipBack, for: podcast))
        guard snapshot.connection == .live || !intent.needsFleet else {
            say("Not connected to the fleet; the key was ignored.", now: now)
            return .none
        }
        switch intent {
        case .quit: return .quit
        case .seek(let delta):
            return seek(snapshot) { SeekStep.target(from: $0, by: delta, duration: snapshot.player.duration) }
        case .chapter(let step):
            do throws(Failure) {
                let start = try step.start(among: snapshot.chapters, at: snapshot.position)
                return seek(snapshot) { _ in start }
            } catch {
                say(error.message, now: now)
            }
        case .speed(let step):
            let level = step.level(from: snapshot.speed, step: settings.speedStep, range: PlaybackSpeed.range)
            return request(level, from: snapshot.speed, \.speeds, "speed", now: now).map { .ask(.speed($0)) } ?? .none
        case .volume(let step):
            let level = step.level(from: snapshot.volume, step: settings.volumeStep, range: Volume.range)
            return request(level, from: snapshot.volume, \.volumes, "volume", unit: " %", now: now)
                .map { .ask(.volume($0)) } ?? .none
        case .say(let text): say(text, now: now)
        case .listKeys: describe(PlayerHelp.sentence(hasList: screen.hasList), now: now)
        case .describe: describe(Sentence.everything(snapshot, selection: screen.selectedName), now: now)
        case .select(let id): selection = id
        case .selectChapter(let index): chapterSelection = index
        case .switchList:
            list = list == .queue ? .chapters : .queue
            chapterSelection = nil
        default: return begin(intent, screen, now: now)
        }
        return .none
    }

    /// Handles a typed line: a key, words about the library’s pages, or the answer to a question of theirs.
    mutating func type(_ line: String, _ key: TypedKey, now: Moment) -> Outcome {
        let line = line.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        if library?.question != nil, let outcome = handlePage(now: now, { $0.type(line) }) { return outcome }
        switch key {
        case .key(let key): return press(key, now: now)
        case .other(let text):
            dismissNotice()
            if let outcome = handlePage(now: now, { $0.type(line) }) { return outcome }
            refuse(text, now: now)
            return .none
        }
    }

    /// Returns the sentences about the library’s pages that weren’t printed yet.
    mutating func takePageLines() -> [String] {
        guard var pages = library else { return [] }
        defer { library = pages }
        return narrator.lines(for: &pages).map(DisplayText.sanitised)
    }

    /// Handles a key of the library’s pages; nil if it is one of the player.
    private mutating func pressPage(_ key: PlayerKey, now: Moment) -> Outcome? {
        handlePage(now: now) { $0.press(key) }
    }

    private mutating func handlePage(
        now: Moment, _ handle: (inout LibraryPages) -> LibraryPages.Outcome?
    ) -> Outcome? {
        guard var pages = library, let outcome = handle(&pages) else { return nil }
        switch outcome {
        case .ignored: return nil
        case .say(let text): say(text, now: now)
        case .handled: break
        case .ask(let task):
            guard case .live? = state?.connection else {
                say("Not connected to the fleet; the key was ignored.", now: now)
                return Outcome.none
            }
            library = pages
            return .ask(.library(task))
        }
        library = pages
        return Outcome.none
    }

    /// Handles the end of a page’s task, and begins the next one.
    mutating func finished(_ task: LibraryTask, _ result: Result<LibraryResult, Failure>, now: Moment) -> Outcome {
        guard let end = library?.finished(task, result, now: now.monotonic) else { return .none }
        if let sentence = end.sentence { say(sentence, now: now) }
        return end.next.map { .ask(.library($0)) } ?? .none
    }

    private mutating func seek(_ snapshot: PlayerSnapshot, _ change: (Double) -> Double) -> Outcome {
        guard let load = snapshot.player.loadID else { return .none }
        let wanted = seeks.press(subject: load, from: snapshot.position, change)
        return wanted.map { .ask(.seek(load: load, to: $0)) } ?? .none
    }

    /// Returns the level to request now; nil if it waits for the request in flight, or if nothing changes because the
    /// level is at its limit, which is said.
    private mutating func request(
        _ level: Double, from current: Double, _ keys: WritableKeyPath<Self, KeyRepeatCoalescer>, _ name: String,
        unit: String = "", now: Moment
    ) -> Double? {
        guard level != current else {
            say("The \(name) is already \(NumberText.short(level))\(unit).", now: now)
            return nil
        }
        return self[keyPath: keys].press(from: current) { _ in level }
    }

    /// Selects the entry after a removed selection, or else the one before.
    private mutating func keepSelection(from before: [QueueState.Entry], to entries: [QueueState.Entry]) {
        guard let selection, !entries.isEmpty, !entries.contains(where: { $0.id == selection }),
            let index = before.firstIndex(where: { $0.id == selection })
        else { return }
        let now = Set(entries.map(\.id))
        let left = before[index...].first { now.contains($0.id) } ?? before[..<index].last { now.contains($0.id) }
        self.selection = left?.id
    }

    /// Begins a command, or queues it after the one in flight.
    private mutating func begin(_ intent: PlayerIntent, _ screen: PlayerScreen, now: Moment) -> Outcome {
        if case .remove(let entry, _) = intent {
            // The next key applies to the next row, even before the state shows the removal.
            let ids = screen.snapshot.queue.entries.map(\.id)
            let index = ids.firstIndex(of: entry) ?? 0
            selection = ids.dropFirst(index + 1).first ?? ids[..<index].last
        }
        guard command != nil else {
            command = intent
            return .ask(.command(intent))
        }
        guard let intent = intent.behindAnother else {
            say("The last command is still running; this key was ignored.", now: now)
            return .none
        }
        guard waiting.count < Self.waitingLimit else {
            say("\(Self.waitingLimit) commands are waiting; this key was ignored.", now: now)
            return .none
        }
        waiting.append(intent)
        return .none
    }

    /// Handles the end of a task, and begins the next one. `effect` describes its effect in a sentence.
    mutating func finished(_ task: PlayerTask, _ failure: Failure?, effect: String? = nil, now: Moment) -> Outcome {
        if let text = failure?.message ?? effect { say(text, now: now) }
        switch task {
        case .library: return .none
        case .seek:
            // The waiting target is in this episode, even if another one plays now.
            guard let load = seeks.subject, let target = seeks.finished(failed: failure != nil) else { return .none }
            return .ask(.seek(load: load, to: target))
        case .speed: return speeds.finished(failed: failure != nil).map { .ask(.speed($0)) } ?? .none
        case .volume: return volumes.finished(failed: failure != nil).map { .ask(.volume($0)) } ?? .none
        case .command(let intent):
            command = nil
            guard failure == nil else {
                waiting = []
                return .none
            }
            switch intent {
            case .remove: say("Removed; u restores it.", now: now)
            case .bookmark(_, let position): say("Bookmarked at \(ClockText.format(position)).", now: now)
            case .sleep(let request) where presentation != .plainText:
                // The requested value is shown: the state may not have it yet.
                say(Sentence.capitalised(Sentence.sleep(request) + "."), now: now)
            default: break
            }
            guard !waiting.isEmpty else { return .none }
            let next = waiting.removeFirst()
            command = next
            return .ask(.command(next))
        }
    }

    /// Returns the last notice once, for a player that prints it.
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

    /// Shows a long text, which stays until the next key if it fits.
    private mutating func describe(_ text: String, now: Moment) {
        say(text, now: now)
        guard presentation == .fullScreen else { return }
        isDescribing = true
        noticeUntil = nil
    }
}

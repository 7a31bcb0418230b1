import NIOConcurrencyHelpers
package import PlaybackService
package import PodcastModel

/// An engine without sound, whose time passes only when it is told so.
package final class SimulatedEngine: AudioEngine {
    /// What a simulated file holds.
    package struct Audio: Sendable, Hashable {
        /// Where the audio ends.
        package var length: Double
        /// The length that the file declares; nil: as long as it is.
        package var declared: Double?
        /// The length that the first moments lead to; it is given up when it is passed.
        package var estimate: Double?
        /// The stream is reported as cut at its end.
        package var cut: Bool
        /// Its chapters.
        package var chapters: [ChapterMark]
        /// Why it cannot be opened.
        package var failure: Failure?
        /// It is open, but nothing of it can be heard yet.
        package var stalls = false
        /// Whether opening it comes to an end at all.
        package var opens = true

        /// A file of `length` seconds.
        package init(
            length: Double, declared: Double? = nil, cut: Bool = false, chapters: [ChapterMark] = [],
            failure: Failure? = nil
        ) {
            self.length = length
            self.declared = declared
            self.cut = cut
            self.chapters = chapters
            self.failure = failure
        }

        /// A file that cannot be opened.
        package static func broken(_ failure: Failure) -> Audio { Audio(length: 0, failure: failure) }
    }

    private struct State {
        var files: [AudioSource: Audio]
        var load: EngineLoad?
        /// What will be opened next.
        var prepared: EngineLoad?
        var audio = Audio(length: 0)
        var position = 0.0
        var serial: UInt64 = 0
        var ended = false
        var now = MonotonicTime(nanoseconds: 0)
        var outputs = EngineOutputs(
            devices: [OutputDevice(name: "simulated", description: "Simulated device")], silent: false)
        /// Whether there is no device, whatever was opened before.
        var isSilent = false
        /// Whether it begins what was prepared when what was to be opened fails; and that it has.
        var beginsPrepared = false
        var hasFailed = false
        var unbidden: LoadID?
        var closed = false
        var hangs = false
        var isStuck = false
        var performed: [EngineCommand] = []
        /// Events that are due, told outside the lock.
        var events: [EngineEvent] = []
    }

    private let state: NIOLockedValueBox<State>
    private let observer: EngineObserver

    /// An engine that knows `files`; every other source is missing. Its clock begins at `now`.
    package init(
        files: [AudioSource: Audio] = [:], now: MonotonicTime = MonotonicTime(nanoseconds: 0),
        observer: @escaping EngineObserver
    ) {
        state = NIOLockedValueBox(State(files: files, now: now))
        self.observer = observer
    }

    /// The commands so far, in order.
    package var performed: [EngineCommand] { state.withLockedValue(\.performed) }
    /// The load that is open.
    package var open: LoadID? { state.withLockedValue(\.load?.id) }

    /// What is open.
    package var source: AudioSource? { state.withLockedValue(\.load?.source) }

    /// The load whose sound goes out; nil: none.
    package var sounding: LoadID? {
        state.withLockedValue { state in
            if let unbidden = state.unbidden { return unbidden }
            guard let load = state.load, state.audio.opens, !load.paused, !state.ended, !state.audio.stalls else {
                return nil
            }
            return load.id
        }
    }

    /// Where what is open is, in seconds.
    package var position: Double { state.withLockedValue(\.position) }

    /// How much of what is open there is, in seconds.
    package var length: Double { state.withLockedValue(\.audio.length) }

    /// The speed of what is open.
    package var speed: Double { state.withLockedValue { $0.load?.speed.factor ?? 0 } }
    /// The volume of what is open.
    package var volume: Double { state.withLockedValue { $0.load?.volume.percent ?? 0 } }

    /// Changes what a source holds, from the next `open` on.
    package func setFile(_ source: AudioSource, _ audio: Audio) {
        state.withLockedValue { $0.files[source] = audio }
    }

    /// Breaks what `prepare` promises, for tests that must find that out: when what was to be opened fails, what was
    /// prepared sounds, until `prepare(nil)` or the next `open`.
    package func beginPreparedAfterFailure() {
        state.withLockedValue { $0.beginsPrepared = true }
    }

    /// Takes the sound device away, or gives it back.
    package func setSilent(_ silent: Bool) {
        change { state in
            state.isSilent = silent
            state.outputs.silent = silent
            if state.load != nil { state.events.append(.outputs(state.outputs)) }
        }
    }

    /// A device works again that was lost, of which nothing tells before the output is opened anew.
    package func repair() {
        state.withLockedValue { $0.isSilent = false }
    }

    /// Plugs a device in that is not noticed before the devices are listed.
    package func plugIn(_ device: OutputDevice) {
        state.withLockedValue { $0.outputs.devices?.append(device) }
    }

    /// From here on nothing is carried out, and nothing sounds.
    package func hang() {
        state.withLockedValue { $0.hangs = true }
    }

    /// From here on what plays stays where it is, as when its sound server takes nothing of it.
    package func stick() {
        state.withLockedValue { $0.isStuck = true }
    }

    /// No data comes any more for what is open, or it comes again.
    package func setStalled(_ stalled: Bool) {
        change { state in
            state.audio.stalls = stalled
            Self.tellProgress(&state)
        }
    }

    /// Nothing more can be read of what is open, as when its file breaks.
    package func breakOff(_ failure: Failure) {
        change { state in
            guard let load = state.load, state.audio.opens else { return }
            state.load = nil
            state.prepared = nil
            state.events.append(.failed(load.id, failure))
        }
    }

    /// Lists these devices. One that has come back is not in use before the output is opened anew, and then only if
    /// it `works`.
    package func setDevices(_ devices: [OutputDevice], works: Bool) {
        change { state in
            state.outputs.devices = devices
            state.isSilent = !works
            // The sound has gone elsewhere.
            if !devices.contains(where: { $0.name == state.outputs.inUse }) { state.outputs.inUse = "" }
            if state.load != nil { state.events.append(.outputs(state.outputs)) }
        }
    }

    /// Lets `seconds` of the clock pass.
    package func advance(seconds: Double) {
        change { state in
            state.now = state.now.advanced(by: .seconds(seconds))
            guard let load = state.load, !state.hangs, !state.isStuck, state.audio.opens, !load.paused, !state.ended,
                !state.audio.stalls
            else { return }
            state.position = min(state.audio.length, state.position + seconds * load.speed.factor)
            if state.position >= state.audio.length { Self.end(&state, load) }
        }
    }

    /// See `AudioEngine`; the events follow before it returns.
    package func perform(_ command: EngineCommand) {
        change { state in
            guard !state.closed, !state.hangs else { return }
            if case .ping(let number) = command { return state.events.append(.pong(number)) }
            state.performed.append(command)
            switch command {
            case .open(let load): Self.open(&state, load)
            case .setPaused(let paused): Self.setPaused(&state, paused)
            case .seek(let position, let serial): Self.seek(&state, position, serial)
            case .setSpeed(let speed):
                state.load?.speed = speed
                Self.tellProgress(&state)
            case .setSound(let sound): state.load?.sound = sound
            case .prepare(let load): Self.prepare(&state, load)
            case .setVolume(let volume): state.load?.volume = volume
            case .setOutput(let device):
                state.load?.output = device
                Self.useDevice(&state)
                if state.load != nil { state.events.append(.outputs(state.outputs)) }
            case .sample: Self.tellProgress(&state)
            case .reloadOutput:
                state.outputs.silent = state.isSilent
                Self.useDevice(&state)
                if state.load != nil { state.events.append(.outputs(state.outputs)) }
            case .listOutputs:
                var outputs = state.outputs
                // Without an open output nothing is known of what is heard.
                if state.load == nil { outputs.silent = nil }
                state.events.append(.outputs(outputs))
            case .unload:
                state.load = nil
                state.prepared = nil
            case .ping: break
            }
        }
    }

    /// See `AudioEngine`.
    package func close() async {
        state.withLockedValue { state in
            state.closed = true
            state.load = nil
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let events = state.withLockedValue { state in
            body(&state)
            defer { state.events = [] }
            return state.events
        }
        events.forEach(observer)
    }

    private static func prepare(_ state: inout State, _ load: EngineLoad?) {
        state.prepared = state.load == nil ? nil : load
        if !state.beginsPrepared || load == nil {
            state.unbidden = nil
        } else if state.hasFailed {
            state.unbidden = load?.id
        }
    }

    private static func open(_ state: inout State, _ load: EngineLoad) {
        let prepared = state.prepared
        state.load = nil
        state.prepared = nil
        state.unbidden = nil
        state.hasFailed = false
        let audio = state.files[load.source] ?? .broken(Failure(.fileMissing, "The file \(load.source) is not there."))
        // The output is opened with the file.
        state.outputs.silent = state.isSilent
        if let failure = audio.failure {
            state.hasFailed = true
            if state.beginsPrepared { state.unbidden = prepared?.id }
            state.events.append(.failed(load.id, failure))
            return
        }
        state.load = load
        state.audio = audio
        guard audio.opens else { return }
        state.position = min(load.start.seconds, audio.length)
        state.serial = load.serial
        state.ended = false
        Self.useDevice(&state)
        state.events.append(.opened(load.id, measured(audio), chapters: audio.chapters))
        state.events.append(.outputs(state.outputs))
        // Where nothing is left of it, it ends at once, wherever it was to begin.
        if audio.cut, load.start.seconds > audio.length { return end(&state, load) }
        tellProgress(&state)
    }

    /// Uses the chosen device, where it is listed; else the default.
    private static func useDevice(_ state: inout State) {
        let chosen = state.load?.output ?? ""
        let isThere = state.outputs.devices?.contains { $0.name == chosen } ?? true
        state.outputs.inUse = isThere ? chosen : ""
    }

    private static func setPaused(_ state: inout State, _ paused: Bool) {
        guard state.load != nil else { return }
        state.load?.paused = paused
        tellProgress(&state)
    }

    private static func seek(_ state: inout State, _ position: PlaybackPosition, _ serial: UInt64) {
        guard let load = state.load else { return }
        state.position = min(position.seconds, state.audio.length)
        state.serial = serial
        state.ended = false
        guard state.audio.cut, position.seconds > state.audio.length else { return tellProgress(&state) }
        // It never gets there.
        let progress = EngineProgress(
            position: position, at: state.now, running: false, serial: serial, speed: load.speed)
        state.events.append(.progress(load.id, progress))
        end(&state, load)
    }

    private static func tellProgress(_ state: inout State) {
        guard let load = state.load, state.audio.opens, !state.ended else { return }
        let progress = EngineProgress(
            position: PlaybackPosition(clamping: state.position), at: state.now,
            running: !load.paused && !state.audio.stalls,
            buffering: !load.paused && state.audio.stalls,
            serial: state.serial, speed: load.speed)
        if let estimate = state.audio.estimate, state.position > estimate,
            let length = measured(state.audio, at: state.position)
        {
            state.events.append(.measured(load.id, length))
        }
        state.events.append(.progress(load.id, progress))
    }

    private static func end(_ state: inout State, _ load: EngineLoad) {
        state.ended = true
        let end = EndOfFile(
            position: PlaybackPosition(clamping: state.position), measured: measured(state.audio, at: state.position),
            cut: state.audio.cut)
        state.events.append(.ended(load.id, end))
    }

    private static func measured(_ audio: Audio, at position: Double = 0) -> MeasuredDuration? {
        if let estimate = audio.estimate {
            let isPassed = position > estimate
            let length = EpisodeDuration(seconds: isPassed ? position + 1 : estimate)
            return length.map { MeasuredDuration($0, isPassed ? .growing : .estimated) }
        }
        return EpisodeDuration(seconds: audio.declared ?? audio.length).map { MeasuredDuration($0) }
    }
}

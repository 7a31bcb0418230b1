import NIOConcurrencyHelpers
package import PlaybackService
package import PodcastModel

/// An engine without sound, whose clock is advanced by tests.
package final class SimulatedEngine: AudioEngine {
    /// The contents of a simulated file.
    package struct Audio: Sendable, Hashable {
        /// The end of the audio, in seconds.
        package var length: Double
        /// The length that the file declares; nil means the actual one.
        package var declared: Double?
        /// The initial estimate of the length, which is dropped when the position is past it.
        package var estimate: Double?
        /// Whether the stream is reported as cut at its end.
        package var cut: Bool
        package var chapters: [ChapterMark]
        /// The failure with which an open of the file ends; nil if the file can be opened.
        package var failure: Failure?
        /// Whether the file opens but gets no data.
        package var stalls = false
        /// Whether an open of the file completes.
        package var opens = true

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

        package static func broken(_ failure: Failure) -> Audio { Audio(length: 0, failure: failure) }
    }

    private struct State {
        var files: [AudioSource: Audio]
        var load: EngineLoad?
        var prepared: EngineLoad?
        var audio = Audio(length: 0)
        var position = 0.0
        var serial: UInt64 = 0
        var ended = false
        var now = MonotonicTime(nanoseconds: 0)
        var outputs = EngineOutputs(
            devices: [OutputDevice(name: "simulated", description: "Simulated device")], silent: false)
        /// Whether there is no device now; `outputs` has the result of the last opening.
        var isSilent = false
        /// Whether a failed opening starts the prepared file, and whether one has failed.
        var beginsPrepared = false
        var hasFailed = false
        var unbidden: LoadID?
        var closed = false
        var hangs = false
        var isStuck = false
        var performed: [EngineCommand] = []
        /// Events that are sent outside the lock.
        var events: [EngineEvent] = []
    }

    private let state: NIOLockedValueBox<State>
    private let observer: EngineObserver

    /// - Parameter files: the files that exist.
    package init(
        files: [AudioSource: Audio] = [:], now: MonotonicTime = MonotonicTime(nanoseconds: 0),
        observer: @escaping EngineObserver
    ) {
        state = NIOLockedValueBox(State(files: files, now: now))
        self.observer = observer
    }

    package var performed: [EngineCommand] { state.withLockedValue(\.performed) }
    package var open: LoadID? { state.withLockedValue(\.load?.id) }

    package var source: AudioSource? { state.withLockedValue(\.load?.source) }

    /// The load whose audio is playing; nil if nothing is playing.
    package var sounding: LoadID? {
        state.withLockedValue { state in
            if let unbidden = state.unbidden { return unbidden }
            guard let load = state.load, state.audio.opens, !load.paused, !state.ended, !state.audio.stalls else {
                return nil
            }
            return load.id
        }
    }

    /// The position of the open file, in seconds.
    package var position: Double { state.withLockedValue(\.position) }

    /// The length of the open file’s audio, in seconds.
    package var length: Double { state.withLockedValue(\.audio.length) }

    package var speed: Double { state.withLockedValue { $0.load?.speed.factor ?? 0 } }
    package var volume: Double { state.withLockedValue { $0.load?.volume.percent ?? 0 } }

    /// Changes the contents of a source, from the next `open` on.
    package func setFile(_ source: AudioSource, _ audio: Audio) {
        state.withLockedValue { $0.files[source] = audio }
    }

    /// Violates the contract of `prepare`, which tests must detect: when a file fails to open, the prepared one
    /// plays until `prepare(nil)` or the next `open`.
    package func beginPreparedAfterFailure() {
        state.withLockedValue { $0.beginsPrepared = true }
    }

    /// Removes or restores the sound device.
    package func setSilent(_ silent: Bool) {
        change { state in
            state.isSilent = silent
            state.outputs.silent = silent
            if state.load != nil { state.events.append(.outputs(state.outputs)) }
        }
    }

    /// Restores a lost device, which isn’t detected until the output is reopened.
    package func repair() {
        state.withLockedValue { $0.isSilent = false }
    }

    /// Adds a device, which isn’t detected until the devices are listed.
    package func plugIn(_ device: OutputDevice) {
        state.withLockedValue { $0.outputs.devices?.append(device) }
    }

    /// Hangs the engine: it performs no further command and plays nothing.
    package func hang() {
        state.withLockedValue { $0.hangs = true }
    }

    /// Stops the position, as a sound server that accepts no sound does.
    package func stick() {
        state.withLockedValue { $0.isStuck = true }
    }

    /// Stops or resumes the data of the open file.
    package func setStalled(_ stalled: Bool) {
        change { state in
            state.audio.stalls = stalled
            Self.reportProgress(&state)
        }
    }

    /// Fails the open file, as a read error does.
    package func breakOff(_ failure: Failure) {
        change { state in
            guard let load = state.load, state.audio.opens else { return }
            state.load = nil
            state.prepared = nil
            state.events.append(.failed(load.id, failure))
        }
    }

    /// Lists these devices. A restored one is not in use until the output is reopened, and then only if it `works`.
    package func setDevices(_ devices: [OutputDevice], works: Bool) {
        change { state in
            state.outputs.devices = devices
            state.isSilent = !works
            // The output switches to another device.
            if !devices.contains(where: { $0.name == state.outputs.inUse }) { state.outputs.inUse = "" }
            if state.load != nil { state.events.append(.outputs(state.outputs)) }
        }
    }

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

    /// Performs a command, as `AudioEngine` documents; the events are sent before it returns.
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
                Self.reportProgress(&state)
            case .setSound(let sound): state.load?.sound = sound
            case .prepare(let load): Self.prepare(&state, load)
            case .setVolume(let volume): state.load?.volume = volume
            case .setOutput(let device):
                state.load?.output = device
                Self.useDevice(&state)
                if state.load != nil { state.events.append(.outputs(state.outputs)) }
            case .sample: Self.reportProgress(&state)
            case .reloadOutput:
                state.outputs.silent = state.isSilent
                Self.useDevice(&state)
                if state.load != nil { state.events.append(.outputs(state.outputs)) }
            case .listOutputs:
                var outputs = state.outputs
                // Without an open output `silent` isn’t known.
                if state.load == nil { outputs.silent = nil }
                state.events.append(.outputs(outputs))
            case .unload:
                state.load = nil
                state.prepared = nil
            case .ping: break
            }
        }
    }

    /// Closes the engine, as `AudioEngine` documents.
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
        let audio = state.files[load.source] ?? .broken(Failure(.fileMissing, "The file \(load.source) doesn’t exist."))
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
        // A file without remaining audio ends at once.
        if audio.cut, load.start.seconds > audio.length { return end(&state, load) }
        reportProgress(&state)
    }

    /// Uses the chosen device if it is listed, else the default.
    private static func useDevice(_ state: inout State) {
        let chosen = state.load?.output ?? ""
        let isThere = state.outputs.devices?.contains { $0.name == chosen } ?? true
        state.outputs.inUse = isThere ? chosen : ""
    }

    private static func setPaused(_ state: inout State, _ paused: Bool) {
        guard state.load != nil else { return }
        state.load?.paused = paused
        reportProgress(&state)
    }

    private static func seek(_ state: inout State, _ position: PlaybackPosition, _ serial: UInt64) {
        guard let load = state.load else { return }
        state.position = min(position.seconds, state.audio.length)
        state.serial = serial
        state.ended = false
        guard state.audio.cut, position.seconds > state.audio.length else { return reportProgress(&state) }
        // Playback never reaches the position.
        let progress = EngineProgress(
            position: position, at: state.now, running: false, serial: serial, speed: load.speed)
        state.events.append(.progress(load.id, progress))
        end(&state, load)
    }

    private static func reportProgress(_ state: inout State) {
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
        let end = ReportedEnd(
            position: PlaybackPosition(clamping: state.position), measured: measured(state.audio, at: state.position),
            cut: state.audio.cut)
        state.events.append(.ended(load.id, end))
    }

    private static func measured(_ audio: Audio, at position: Double = 0) -> MeasuredDuration? {
        if let estimate = audio.estimate {
            let isPassed = position > estimate
            let length = EpisodeDuration(seconds: isPassed ? position + 1 : estimate)
            return length.map { MeasuredDuration($0, isPassed ? .partial : .estimated) }
        }
        return EpisodeDuration(seconds: audio.declared ?? audio.length).map { MeasuredDuration($0) }
    }
}

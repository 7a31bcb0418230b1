import LibC
import NIOConcurrencyHelpers
import PodcastModel

/// The real engine: libmpv, opened at the first `open`, on a thread of its own.
///
/// That thread alone calls libmpv and runs the observer; others only append commands and wake it.
package final class MPVEngine: AudioEngine {
    /// The sound systems that are tried in turn, unless others are named.
    package static let usualOutputs = "pipewire,pulse,alsa"

    private struct State {
        var commands: [EngineCommand] = []
        var waker: MPVWaker?
        /// The devices that there are, until the thread has seen them.
        var listed: [OutputDevice]?
        var running = false
        var closed = false
        var closing: [CheckedContinuation<Void, Never>] = []
    }

    private let audioOutputs: String
    private let observer: EngineObserver
    private let state = NIOLockedValueBox(State())

    /// An engine that reports its events to `observer`.
    ///
    /// - Parameter audioOutputs: the library's sound drivers, tried in order; `null` makes no sound in real time.
    package init(audioOutputs: String = usualOutputs, observer: @escaping EngineObserver) {
        self.audioOutputs = audioOutputs.isEmpty ? Self.usualOutputs : audioOutputs
        self.observer = observer
    }

    /// See `AudioEngine`. Before the first `open` other commands than `listOutputs` are dropped.
    package func perform(_ command: EngineCommand) {
        let start = state.withLockedValue { state in
            guard !state.closed else { return false }
            if !state.running {
                guard command.startsEngine else { return false }
                state.running = true
                state.commands = [command]
                return true
            }
            state.commands.append(command)
            state.waker?.wake()
            return false
        }
        if start { startThread() }
    }

    package func close() async {
        await withCheckedContinuation { continuation in
            let done = state.withLockedValue { state in
                state.closed = true
                guard state.running else { return true }
                state.closing.append(continuation)
                state.waker?.wake()
                return false
            }
            if done { continuation.resume() }
        }
    }

    private func startThread() {
        let result = EngineThread.start { self.run() }
        guard result != 0 else { return }
        stopped()
        observer(
            .unusable(
                Failure(.internalError, "No thread for the audio engine: \(String(cString: strerror(result))).")))
    }

    /// The thread: until it is closed, or the library cannot be used.
    private func run() {
        do {
            var player = try makePlayer()
            while let commands = drainCommands() {
                commands.forEach(player.perform)
                if let devices = drainListedDevices() { player.devicesListed(devices) }
                guard player.isUnused, !player.isListing else {
                    player.handleEvents()
                    continue
                }
                // The library need not stay in memory for a list of devices.
                destroy(player)
                if endsUnused() { return }
                player = try makePlayer()
            }
            destroy(player)
        } catch {
            observer(.unusable(error))
        }
        stopped()
    }

    private func makePlayer() throws(Failure) -> MPVPlayer {
        let core = try MPVCore(audioOutputs: audioOutputs)
        state.withLockedValue { $0.waker = core.waker }
        return MPVPlayer(
            core: core, silenceIsWanted: audioOutputs == "null", observer: observer,
            listed: { [state] devices in
                state.withLockedValue { state in
                    state.listed = devices
                    state.waker?.wake()
                }
            })
    }

    private func destroy(_ player: MPVPlayer) {
        player.outputs.watch?.end()
        state.withLockedValue { $0.waker = nil }
        player.core.destroy()
    }

    /// Whether nothing else is asked for: then the thread ends.
    private func endsUnused() -> Bool {
        state.withLockedValue { state in
            guard state.commands.isEmpty, !state.closed else { return false }
            state.running = false
            return true
        }
    }

    /// Removes and returns the queued commands; nil once it is closed.
    private func drainCommands() -> [EngineCommand]? {
        state.withLockedValue { state in
            guard !state.closed else { return nil }
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// The devices, if they have been listed since the last call.
    private func drainListedDevices() -> [OutputDevice]? {
        state.withLockedValue { state in
            defer { state.listed = nil }
            return state.listed
        }
    }

    private func stopped() {
        let waiting = state.withLockedValue { state in
            state.running = false
            state.commands = []
            defer { state.closing = [] }
            return state.closing
        }
        waiting.forEach { $0.resume() }
    }
}

extension EngineCommand {
    /// Whether an engine that does not run is started for it.
    fileprivate var startsEngine: Bool {
        switch self {
        case .open, .listOutputs: true
        default: false
        }
    }
}

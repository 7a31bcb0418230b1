import LibC
import NIOConcurrencyHelpers
import PodcastModel

/// The engine that uses libmpv on a separate thread, which the first `open` or `listOutputs` starts.
///
/// Only that thread calls libmpv and the observer; others append commands and wake it.
package final class MPVEngine: AudioEngine {
    /// The default sound systems to try, in order.
    package static let defaultOutputs = "pipewire,pulse,alsa"

    /// The stack of a thread on which libmpv is loaded and called, in bytes.
    static let stackSize = 8 << 20

    private struct State {
        var commands: [EngineCommand] = []
        var waker: MPVWaker?
        /// The devices that were listed, until the thread has handled them.
        var listed: [OutputDevice]?
        var running = false
        var closed = false
        var closing: [CheckedContinuation<Void, Never>] = []
    }

    private let audioOutputs: String
    private let observer: EngineObserver
    private let state = NIOLockedValueBox(State())

    /// - Parameter audioOutputs: libmpv’s sound drivers, tried in order; `null` plays silently in real time.
    package init(audioOutputs: String = defaultOutputs, observer: @escaping EngineObserver) {
        self.audioOutputs = audioOutputs.isEmpty ? Self.defaultOutputs : audioOutputs
        self.observer = observer
    }

    /// Drops commands other than `listOutputs` before the first `open`.
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
        if let thread = SystemThread(stackSize: Self.stackSize, { self.run() }) { return thread.detach() }
        let reason = SystemError.reason()
        stopped()
        observer(.unusable(Failure(.internalError, "Couldn’t start a thread for the audio engine: \(reason).")))
    }

    /// Runs until the engine is closed, or libmpv can’t be used.
    private func run() {
        do {
            var player = try makePlayer()
            while let (commands, devices) = drain() {
                commands.forEach(player.perform)
                if let devices { player.devicesListed(devices) }
                guard player.isUnused, !player.isListing else {
                    player.handleEvents()
                    continue
                }
                // libmpv isn’t kept loaded after it has only listed devices.
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
            core: core, usesNullOutput: audioOutputs == "null", observer: observer,
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

    /// Marks the engine as stopped if no command is queued, and returns whether the thread ends.
    private func endsUnused() -> Bool {
        state.withLockedValue { state in
            guard state.commands.isEmpty, !state.closed else { return false }
            state.running = false
            return true
        }
    }

    /// Removes and returns the queued commands, and the devices if they have been listed; nil if the engine is closed.
    private func drain() -> (commands: [EngineCommand], devices: [OutputDevice]?)? {
        state.withLockedValue { state in
            guard !state.closed else { return nil }
            defer { (state.commands, state.listed) = ([], nil) }
            return (state.commands, state.listed)
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
    fileprivate var startsEngine: Bool {
        switch self {
        case .open, .listOutputs: true
        default: false
        }
    }
}

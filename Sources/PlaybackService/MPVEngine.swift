import NIOConcurrencyHelpers
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The real engine: libmpv, opened at the first `open`, on a thread of its own.
///
/// That thread alone calls libmpv and runs the observer; others only append commands and wake it.
public final class MPVEngine: AudioEngine {
    /// The sound systems that are tried in turn, unless others are named.
    public static let usualOutputs = "pipewire,pulse,alsa"

    private struct State {
        var commands: [EngineCommand] = []
        var waker: MPVWaker?
        var running = false
        var closed = false
        var closing: [CheckedContinuation<Void, Never>] = []
    }

    private let audioOutputs: String
    private let observer: EngineObserver
    private let state = NIOLockedValueBox(State())

    /// An engine that tells `observer` what happens.
    ///
    /// - Parameter audioOutputs: the library's sound drivers, tried in order; `null` makes no sound in real time.
    public init(audioOutputs: String = usualOutputs, observer: @escaping EngineObserver) {
        self.audioOutputs = audioOutputs.isEmpty ? Self.usualOutputs : audioOutputs
        self.observer = observer
    }

    /// See `AudioEngine`. Before the first `open` other commands are dropped.
    public func perform(_ command: EngineCommand) {
        let start = state.withLockedValue { state in
            guard !state.closed else { return false }
            if !state.running {
                guard case .open = command else { return false }
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

    /// See `AudioEngine`.
    public func close() async {
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
        let retained = Unmanaged.passRetained(self).toOpaque()
        #if canImport(Darwin)
        var created: pthread_t?
        #else
        var created = pthread_t()
        #endif
        let result = pthread_create(
            &created, nil,
            { argument in
                // Not optional on every system.
                let given: UnsafeMutableRawPointer? = argument
                guard let argument = given else { return nil }
                Unmanaged<MPVEngine>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, retained)
        let thread: pthread_t? = created
        guard result == 0, let thread else {
            Unmanaged<MPVEngine>.fromOpaque(retained).release()
            stopped()
            observer(
                .unusable(
                    Failure(.internalError, "No thread for the audio engine: \(String(cString: strerror(result))).")))
            return
        }
        pthread_detach(thread)
    }

    /// The thread: until it is closed, or the library cannot be used.
    private func run() {
        do {
            let core = try MPVCore(audioOutputs: audioOutputs)
            state.withLockedValue { $0.waker = core.waker }
            let player = MPVPlayer(core: core, silenceIsWanted: audioOutputs == "null", observer: observer)
            while let commands = takeCommands() {
                commands.forEach(player.perform)
                player.handleEvents()
            }
            state.withLockedValue { $0.waker = nil }
            core.destroy()
        } catch {
            observer(.unusable(error))
        }
        stopped()
    }

    /// What has been asked for since the last call; nil once it is closed.
    private func takeCommands() -> [EngineCommand]? {
        state.withLockedValue { state in
            guard !state.closed else { return nil }
            defer { state.commands = [] }
            return state.commands
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

import LibC
import Logging
import NIOConcurrencyHelpers
import OwnerKit
import PodcastModel
package import ProcessKit
import ServiceLifecycle
import WireMessages

/// The player on the bus: `PlaybackMachine` decides, this performs it with the engine, files and servers.
package final class PlaybackShell: Service {
    /// Makes an engine that reports to the observer. Called once, when the machine first wants one.
    package typealias EngineMaker = @Sendable (@escaping EngineObserver) -> any AudioEngine

    private let owner: OwnerService<PlaybackMachine>
    private let engine: LazyEngine
    private let probe: StreamProbe
    private let suspension: SuspendWatch
    /// Why the process is to end without its engine.
    private let hangs: AsyncStream<Failure>

    /// - Parameters:
    ///   - playback: what the process knows of itself; nil: what the environment says.
    ///   - makeEngine: makes the engine; nil: it is libmpv.
    package init(_ context: ServiceContext, playback: PlaybackContext? = nil, makeEngine: EngineMaker? = nil) {
        let outputs = context.environment["LOCKSTEP_AO"] ?? ""
        let engine = LazyEngine(makeEngine ?? { MPVEngine(audioOutputs: outputs, observer: $0) })
        let playback =
            playback
            ?? PlaybackContext(
                bootID: SystemClocks.bootID, fleetRun: context.environment[ChildGuard.fleetRunVariable] ?? "")
        self.engine = engine
        let probe = StreamProbe()
        self.probe = probe
        let secrets = SecretsReader(context.home.secretsFile)
        let suspension = SuspendWatch()
        self.suspension = suspension
        let (hangs, hang) = AsyncStream.makeStream(of: Failure.self)
        self.hangs = hangs
        owner = OwnerService(PlaybackMachine(context: playback), context: context) { action, inputs in
            switch action {
            case .engine(let command):
                engine.perform(command.with(secrets)) { inputs.send(.engine($0)) }
                guard case .open = command else { return }
                suspension.start { event in
                    switch event {
                    case .suspends: inputs.send(.suspends)
                    case .wakes: inputs.send(.wakes)
                    case .ended(let reason):
                        context.logger.debug("the machine’s sleep is not noticed", metadata: ["why": "\(reason)"])
                    }
                }
            case .examine(let load, let path):
                // A file on a sleeping disk or a lost mount may take its time.
                Task.detached { inputs.send(.examined(load, isThere: access(path, F_OK) == 0)) }
            case .probe(let load, let url, let podcast, let serial):
                probe.ask(url, secrets.credentials(of: podcast)) { answer in
                    inputs.send(.probed(load, serial: serial, answer))
                }
            case .allowSuspend:
                suspension.release()
            case .endProcess(let failure):
                hang.yield(failure)
            }
        }
    }

    /// Serves until graceful shutdown, then closes the engine.
    /// - Throws: see `OwnerService.run`; when the engine hangs, that it does.
    package func run() async throws {
        let end = await withTaskGroup(of: Result<Failure?, any Error>.self) { group in
            group.addTask {
                do {
                    try await self.owner.run()
                    return .success(nil)
                } catch {
                    return .failure(error)
                }
            }
            group.addTask { .success(await self.hangs.first { _ in true }) }
            defer { group.cancelAll() }
            return await group.next() ?? .success(nil)
        }
        suspension.close()
        let hang = try? end.get()
        if hang == nil { await engine.close() }
        await probe.shutdown()
        if let hang { throw hang }
        _ = try end.get()
    }
}

extension EngineCommand {
    /// The same, with the user and password for the server that a file is opened at.
    fileprivate func with(_ secrets: SecretsReader) -> EngineCommand {
        func known(_ load: EngineLoad) -> EngineLoad {
            guard case .web(let url) = load.source, let address = WebAddress(url) else { return load }
            var known = load
            known.credentials = secrets.credentials(of: load.podcast, at: address)
            return known
        }
        switch self {
        case .open(let load): return .open(known(load))
        case .prepare(let load): return .prepare(load.map(known))
        default: return self
        }
    }
}

/// An engine that is made when it is first needed.
private final class LazyEngine: Sendable {
    private let make: PlaybackShell.EngineMaker
    private let engine = NIOLockedValueBox<(any AudioEngine)?>(nil)

    init(_ make: @escaping PlaybackShell.EngineMaker) {
        self.make = make
    }

    func perform(_ command: EngineCommand, observer: @escaping EngineObserver) {
        let engine = self.engine.withLockedValue { engine in
            let made = engine ?? make(observer)
            engine = made
            return made
        }
        engine.perform(command)
    }

    func close() async {
        await engine.withLockedValue { $0 }?.close()
    }
}

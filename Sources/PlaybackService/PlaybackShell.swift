import BusKit
import LibC
import Logging
import NIOConcurrencyHelpers
import OwnerKit
import PodcastModel
package import ProcessKit
import ServiceLifecycle
import WireMessages

/// Runs `PlaybackMachine` on the bus, and performs its actions with the engine, files and servers.
package final class PlaybackShell: Service {
    /// Creates an engine that reports to the observer.
    package typealias EngineMaker = @Sendable (@escaping EngineObserver) -> any AudioEngine

    private let owner: OwnerService<PlaybackMachine>
    private let engine: any AudioEngine
    private let probe: StreamProbe
    private let suspension: SuspendWatch
    /// Failures for which the process ends without closing its engine.
    private let hangs: AsyncStream<Failure>

    /// - Parameters:
    ///   - playback: the identity of boot and fleet; nil means the real one.
    ///   - makeEngine: creates the engine; nil means libmpv.
    package init(_ context: ServiceContext, playback: PlaybackContext? = nil, makeEngine: EngineMaker? = nil) {
        let outputs = context.environment["LOCKSTEP_AO"] ?? ""
        let makeEngine = makeEngine ?? { MPVEngine(audioOutputs: outputs, observer: $0) }
        // The engine is created before the owner service that receives its events.
        let observer = NIOLockedValueBox<ServiceInputs<PlaybackInput>?>(nil)
        let engine = makeEngine { event in observer.withLockedValue { $0 }?.send(.engine(event)) }
        self.engine = engine
        let playback =
            playback
            ?? PlaybackContext(
                bootID: SystemClocks.bootID, fleetRun: context.environment[ChildGuard.fleetRunVariable] ?? "",
                device: Self.hostName)
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
                engine.perform(command.with(secrets))
                guard case .open = command else { return }
                suspension.start { event in
                    switch event {
                    case .suspends: inputs.send(.suspends)
                    case .wakes: inputs.send(.wakes)
                    case .ended(let reason):
                        context.logger.debug("not watching for the computer’s sleep", metadata: ["why": "\(reason)"])
                    }
                }
            case .examine(let load, let path):
                // A sleeping disk or an unreachable mount may block for long.
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
        observer.withLockedValue { $0 = owner.inputs }
    }

    /// The name of this computer; empty if it is unknown.
    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Serves until graceful shutdown, then closes the engine.
    /// - Throws: see `OwnerService.run`; the failure of `endProcess`.
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
    /// Returns the command with the user and password for the server of its file.
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

import BusKit
import Dispatch
import OwnerKit
import PodcastModel
package import ProcessKit
import ServiceLifecycle

/// Runs the downloads machine, and fetches, checks and deletes files for it.
package struct DownloadsShell: ServiceLifecycle.Service {
    private let service: OwnerService<DownloadsMachine>
    private let worker: DownloadsWorker

    /// - Parameter stall: the time after which the transfer of a silent server fails.
    package init(_ context: ServiceContext, stall: Duration = .seconds(30)) {
        let root = context.home.downloadDirectory
        let worker = DownloadsWorker(
            root: root, stall: stall, quarantine: CrashLoopQuarantine(context),
            secrets: SecretsReader(context.home.secretsFile))
        self.worker = worker
        service = OwnerService(DownloadsMachine(root: root), context: context) { action, inputs in
            worker.perform(action) { inputs.send($0) }
        }
    }

    /// Serves until the process is stopped; nothing is written after that.
    package func run() async throws {
        do { try await service.run() } catch {
            await worker.shutdown()
            throw error
        }
        await worker.shutdown()
    }
}

/// Performs actions in order, except for transfers, which run concurrently.
private final class DownloadsWorker: Sendable {
    private let folder: DownloadFolder
    private let client: TransferClient
    private let quarantine: CrashLoopQuarantine
    /// File checks run on a separate thread: on a disk that hangs they may never end.
    private let checks = DispatchQueue(label: "lockstep.files")
    private let steps: AsyncStream<@Sendable () async -> Void>.Continuation
    private let task: Task<Void, Never>

    init(root: String, stall: Duration, quarantine: CrashLoopQuarantine, secrets: SecretsReader) {
        let folder = DownloadFolder(root: root)
        self.folder = folder
        self.quarantine = quarantine
        client = TransferClient(folder: folder, stall: stall, secrets: secrets)
        let (stream, steps) = AsyncStream.makeStream(of: (@Sendable () async -> Void).self)
        self.steps = steps
        task = Task { for await step in stream { await step() } }
    }

    func perform(_ action: DownloadsAction, report: @escaping @Sendable (DownloadsInput) -> Void) {
        let (folder, client, quarantine) = (folder, client, quarantine)
        switch action {
        case .start(let order): steps.yield { self.start(order, report) }
        case .cancel(let number):
            steps.yield {
                quarantine.end(number)
                await client.cancel(number)
                report(.ended(number))
            }
        case .release(let episode): steps.yield { quarantine.release(Self.key(episode)) }
        case .discard(let episode): steps.yield { folder.discard(episode) }
        case .delete(let episode, let path, let marker):
            steps.yield {
                report(.deleted(episode: episode, folder.marked(marker).delete(episode, at: path)))
            }
        case .mark(let id):
            steps.yield {
                do throws(Failure) { report(.marked(try folder.mark(id))) } catch { report(.markFailed(error)) }
            }
        case .scanFolder:
            checks.async {
                do throws(Failure) {
                    let (files, snapshot) = try folder.files()
                    report(.folderScanned(files, snapshot))
                } catch { report(.scanFailed(error)) }
            }
        case .checkFiles(let number, let paths):
            checks.async {
                let (found, snapshot) = folder.check(paths)
                report(.filesChecked(number, found, snapshot))
            }
        case .checkNetwork:
            steps.yield {
                report(
                    .networkChecked(
                        interfaces: DefaultRoutes.interfaces, hour: LocalTime.calendar(SystemClocks.wall()).hour))
            }
        case .limit(let rate): client.limit(bytesPerSecond: rate)
        }
    }

    private static func key(_ episode: String) -> String { "transfer:\(episode)" }

    /// Begins a transfer; fails it if earlier crashes of the process have quarantined it.
    private func start(_ order: TransferOrder, _ report: @escaping @Sendable (DownloadsInput) -> Void) {
        quarantine.begin(order.number, Self.key(order.episode)) { [client, quarantine] in
            client.start(order) { input in
                report(input)
                switch input {
                case .completed, .failed: quarantine.end(order.number)
                default: break
                }
            }
        } refuse: {
            let failure = CrashLoopQuarantine.refusal(of: "this download", by: "downloads")
            report(.failed(order.number, TransferFailure(failure)))
        }
    }

    func shutdown() async {
        await client.shutdown()
        steps.finish()
        await task.value
    }
}

/// The default routes of the machine.
private enum DefaultRoutes {
    static var interfaces: [String] {
        let fourth = lines("/proc/net/route").filter { $0.count > 1 && $0[1] == "00000000" }.map { $0[0] }
        let sixth = lines("/proc/net/ipv6_route")
            .filter { $0.count > 9 && $0[0].allSatisfy { $0 == "0" } && $0[1] == "00" && $0[9] != "lo" }.map { $0[9] }
        return Set(fourth + sixth).sorted()
    }

    private static func lines(_ path: String) -> [[String]] {
        SmallFile.text(of: path).split(separator: "\n")
            .map { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
    }
}

import NIOConcurrencyHelpers
import PodcastModel
import WebClient

/// Asks web servers which audio they have at an address, beside the engine, whose library does not tell.
///
/// It asks for the first byte alone, which servers that count downloads do not count. Whatever goes wrong is no news:
/// the engine meets the same trouble and says so.
final class StreamProbe: Sendable {
    /// What a server says.
    enum Answer: Sendable {
        case audio(AudioTag)
        /// It answers with this status, 400 or more.
        case refused(Int)
    }

    private struct State {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var count: UInt64 = 0
        var isShut = false
    }

    private let client: WebClient
    private let state = NIOLockedValueBox(State())

    init() {
        var options = WebClientOptions()
        options.idleTimeout = .seconds(1)
        client = WebClient(options)
    }

    /// Calls `report` once with what the server says, if it says anything.
    func ask(
        _ url: String, _ credentials: [WebOrigin: WebCredentials] = [:], report: @escaping @Sendable (Answer) -> Void
    ) {
        guard let address = WebAddress(url) else { return }
        state.withLockedValue { state in
            guard !state.isShut else { return }
            state.count += 1
            let number = state.count
            state.tasks[number] = Task {
                if let answer = await self.ask(address, credentials) { report(answer) }
                self.state.withLockedValue { _ = $0.tasks.removeValue(forKey: number) }
            }
        }
    }

    /// Ends what is under way and closes every connection.
    func shutdown() async {
        let tasks = state.withLockedValue { state in
            state.isShut = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        await client.shutdown()
    }

    private func ask(_ address: WebAddress, _ credentials: [WebOrigin: WebCredentials]) async -> Answer? {
        var request = WebRequest(address)
        request.credentials = credentials
        request.decompresses = false
        request.range = WebRange(from: 0, to: 0)
        request.timeLimits = WebTimeLimits(silence: .seconds(10), total: .seconds(15))
        // The body is not read: the transfer ends with the response.
        guard let response = try? await client.send(request) else { return nil }
        guard (200..<300).contains(response.status) else {
            return response.status >= 400 ? .refused(response.status) : nil
        }
        let whole =
            response.status == 206
            ? response.headers["Content-Range"]?.split(separator: "/").last.flatMap { UInt64($0) }
            : response.headers["Content-Length"].flatMap { UInt64($0) }
        return .audio(AudioTag(etag: response.headers["ETag"] ?? "", size: whole ?? 0))
    }
}

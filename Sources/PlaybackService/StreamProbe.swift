import AsyncHTTPClient
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import PodcastModel

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
        var client: HTTPClient?
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var count: UInt64 = 0
        var isShut = false
    }

    private let state = NIOLockedValueBox(State())

    /// Calls `report` once with what the server says, if it says anything.
    func ask(_ url: String, report: @escaping @Sendable (Answer) -> Void) {
        state.withLockedValue { state in
            guard !state.isShut else { return }
            let client = state.client ?? Self.makeClient()
            state.client = client
            state.count += 1
            let number = state.count
            state.tasks[number] = Task {
                if let answer = await Self.ask(client, url) { report(answer) }
                self.state.withLockedValue { _ = $0.tasks.removeValue(forKey: number) }
            }
        }
    }

    /// Ends what is under way and closes every connection.
    func shutdown() async {
        let (client, tasks) = state.withLockedValue { state in
            state.isShut = true
            return (state.client, Array(state.tasks.values))
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        // Nothing is left that a failure to close could harm.
        try? await client?.shutdown()
    }

    private static func makeClient() -> HTTPClient {
        var configuration = HTTPClient.Configuration.singletonConfiguration
        configuration.redirectConfiguration = .follow(max: 10, allowCycles: false)
        configuration.timeout = .init(connect: .seconds(10), read: .seconds(10))
        configuration.connectionPool.idleTimeout = .seconds(1)
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    private static func ask(_ client: HTTPClient, _ url: String) async -> Answer? {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "User-Agent", value: "Lockstep/1.0")
        request.headers.add(name: "Range", value: "bytes=0-0")
        // The body is not read: the connection ends with the response.
        guard let response = try? await client.execute(request, deadline: .now() + .seconds(15), logger: nil) else {
            return nil
        }
        guard (200..<300).contains(response.status.code) else {
            return response.status.code >= 400 ? .refused(Int(response.status.code)) : nil
        }
        let headers = response.headers
        let whole =
            response.status == .partialContent
            ? headers.first(name: "content-range")?.split(separator: "/").last.flatMap { UInt64($0) }
            : headers.first(name: "content-length").flatMap { UInt64($0) }
        return .audio(AudioTag(etag: headers.first(name: "etag") ?? "", size: whole ?? 0))
    }
}

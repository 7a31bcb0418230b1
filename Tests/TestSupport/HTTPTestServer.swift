import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

/// A scripted HTTP/1.1 server on 127.0.0.1: each path answers with a list of responses, one per request, repeating
/// the last. It records the requests.
package final class HTTPTestServer: Sendable {
    private let channel: any Channel
    private let script: ScriptedPaths
    /// The port on which it listens.
    package let port: Int

    private init(channel: any Channel, port: Int, script: ScriptedPaths) {
        self.channel = channel
        self.port = port
        self.script = script
    }

    /// Listens on `port`; 0 means any free port.
    package static func start(port: Int = 0) async throws -> HTTPTestServer {
        let script = ScriptedPaths()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    try child.pipeline.syncOperations.configureHTTPServerPipeline()
                    try child.pipeline.syncOperations.addHandler(ScriptedResponder(script))
                    script.opened(child)
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        return HTTPTestServer(channel: channel, port: channel.localAddress?.port ?? 0, script: script)
    }

    /// Runs `body` with a server that is stopped afterwards.
    package static func with<Result: Sendable>(
        _ body: @Sendable (HTTPTestServer) async throws -> Result
    ) async throws -> Result {
        let server = try await start()
        do {
            let result = try await body(server)
            await server.stop()
            return result
        } catch {
            await server.stop()
            throw error
        }
    }

    /// Stops listening and closes every connection, including stalled ones. A repeated call does nothing.
    package func stop() async {
        try? await channel.close().get()
        for child in script.stopped() {
            try? await child.close().get()
        }
    }

    /// Returns the address of a path that begins with a slash.
    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Sets the responses for `path`, which are sent in turn; the last one repeats. Other paths are answered with
    /// 404.
    package func route(_ path: String, _ responses: HTTPTestResponse...) {
        script.set(responses, at: path)
    }

    /// Continues every response at `path` that stalls or will stall.
    package func release(_ path: String) {
        script.release(path)
    }

    /// Waits until a response at `path` stalls or the server is stopped.
    package func stalled(at path: String) async {
        await script.stalled(at: path)
    }

    /// All requests so far, in order of arrival.
    package var requests: [HTTPTestRequest] { script.requests }

    /// The requests for one path so far.
    package func requests(for path: String) -> [HTTPTestRequest] { requests.filter { $0.path == path } }

    /// Waits until no request is being answered: all are complete, or their connections are closed.
    package func answeredAll() async {
        await script.answeredAll()
    }

    /// The maximum number of requests that were answered at the same time.
    package var peakConcurrency: Int { script.peakConcurrency }

    /// Waits until at least `count` requests for `path` have arrived, or the server is stopped.
    package func received(_ count: Int, at path: String) async {
        await script.received(count, at: path)
    }
}

/// The script and the requests so far.
final class ScriptedPaths: Sendable {
    private struct Waiter {
        var path: String
        var count: Int
        var resume: CheckedContinuation<Void, Never>
    }
    private struct State {
        var responses: [String: [HTTPTestResponse]] = [:]
        var requests: [HTTPTestRequest] = []
        var released: Set<String> = []
        var stalled: [(path: String, resume: @Sendable () -> Void)] = []
        var waiters: [Waiter] = []
        var stallWaiters: [(path: String, resume: CheckedContinuation<Void, Never>)] = []
        var idleWaiters: [CheckedContinuation<Void, Never>] = []
        var children: [ObjectIdentifier: any Channel] = [:]
        var active = 0
        var peak = 0
        var isStopped = false

        func isMet(_ waiter: Waiter) -> Bool {
            requests.count { $0.path == waiter.path } >= waiter.count
        }
    }
    private let state = NIOLockedValueBox(State())

    var requests: [HTTPTestRequest] { state.withLockedValue { $0.requests } }
    var peakConcurrency: Int { state.withLockedValue { $0.peak } }

    func set(_ responses: [HTTPTestResponse], at path: String) {
        state.withLockedValue { state in
            state.responses[path] = responses
            state.released.remove(path)
        }
    }

    /// Records a request and returns its response.
    func next(_ request: HTTPTestRequest) -> HTTPTestResponse {
        let (response, ready) = state.withLockedValue { state in
            state.requests.append(request)
            state.active += 1
            state.peak = max(state.peak, state.active)
            var response = HTTPTestResponse.status(404)
            if var left = state.responses[request.path], let first = left.first {
                response = first
                if left.count > 1 { left.removeFirst() }
                state.responses[request.path] = left
                if let wanted = response.authorization, request.header("Authorization") != wanted {
                    response = .status(401, headers: [("WWW-Authenticate", "Basic realm=\"feeds\"")])
                }
            }
            let ready = state.waiters.filter(state.isMet)
            state.waiters = state.waiters.filter { !state.isMet($0) }
            return (response, ready)
        }
        for waiter in ready { waiter.resume.resume() }
        return response
    }

    /// Records that a request has been answered or its connection closed.
    func ended() {
        let waiters = state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
            state.active -= 1
            guard state.active == 0 else { return [] }
            defer { state.idleWaiters = [] }
            return state.idleWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func answeredAll() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLockedValue { state in
                guard state.active > 0, !state.isStopped else { return true }
                state.idleWaiters.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Calls `resume` when the path is released; at once if it already is.
    func stall(at path: String, _ resume: @escaping @Sendable () -> Void) {
        let (isReleased, ready) = state.withLockedValue { state in
            let ready = state.stallWaiters.filter { $0.path == path }
            state.stallWaiters.removeAll { $0.path == path }
            guard !state.released.contains(path) else { return (true, ready) }
            state.stalled.append((path, resume))
            return (false, ready)
        }
        for waiter in ready { waiter.resume.resume() }
        if isReleased { resume() }
    }

    func stalled(at path: String) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLockedValue { state in
                guard !state.isStopped, !state.stalled.contains(where: { $0.path == path }) else { return true }
                state.stallWaiters.append((path, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func release(_ path: String) {
        let stalls = state.withLockedValue { state in
            state.released.insert(path)
            let stalls = state.stalled.filter { $0.path == path }
            state.stalled.removeAll { $0.path == path }
            return stalls
        }
        for stalled in stalls { stalled.resume() }
    }

    func received(_ count: Int, at path: String) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLockedValue { state in
                let waiter = Waiter(path: path, count: count, resume: continuation)
                guard !state.isStopped, !state.isMet(waiter) else { return true }
                state.waiters.append(waiter)
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func opened(_ child: any Channel) {
        let id = ObjectIdentifier(child)
        let isStopped = state.withLockedValue { state in
            state.children[id] = child
            return state.isStopped
        }
        child.closeFuture.whenComplete { _ in self.state.withLockedValue { _ = $0.children.removeValue(forKey: id) } }
        if isStopped { child.close(promise: nil) }
    }

    /// Ends all waits and returns the connections that are still open.
    func stopped() -> [any Channel] {
        let (children, waiters) = state.withLockedValue { state in
            state.isStopped = true
            let waiters = state.waiters.map(\.resume) + state.stallWaiters.map(\.resume) + state.idleWaiters
            (state.waiters, state.idleWaiters) = ([], [])
            state.stallWaiters = []
            state.stalled = []
            return (Array(state.children.values), waiters)
        }
        for waiter in waiters { waiter.resume() }
        return children
    }
}

import NIOConcurrencyHelpers
import TestSupport
import Testing

@testable import ZeroMQ

/// Records a handler’s events for the test that awaits them.
final class Journal: Sendable {
    private let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation
    private let lines = NIOLockedValueBox<[String]>([])

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func note(_ line: String) {
        lines.withLockedValue { $0.append(line) }
        continuation.yield(line)
    }

    var all: [String] { lines.withLockedValue { $0 } }

    /// Returns once this line was recorded.
    func wait(for line: String) async {
        for await next in stream where next == line { return }
    }
}

/// Echoes the messages of a router and records the events. It isn’t copyable, to test that a handler needn’t be.
struct EchoHandler: PollHandler, ~Copyable {
    enum Command: Sendable {
        case say(String)
        case fail
        case wakeAfter(milliseconds: UInt64)
        case reopen
    }
    struct Broken: Error {}

    let endpoint: IPCEndpoint?
    let journal: Journal
    var socket: SocketID?
    var deadline: UInt64?

    init(_ endpoint: IPCEndpoint?, _ journal: Journal) {
        self.endpoint = endpoint
        self.journal = journal
    }

    mutating func start(_ sockets: SocketSet) throws {
        if let endpoint {
            let socket = try sockets.open(.router, options: [.routerMandatory(true)])
            try sockets.bind(socket, to: endpoint)
            self.socket = socket
        }
        journal.note("start")
    }

    mutating func received(_ command: Command, _ sockets: SocketSet) throws {
        switch command {
        case .say(let text): journal.note(text)
        case .fail: throw Broken()
        case .wakeAfter(let milliseconds):
            deadline = MonotonicClock.nanoseconds() + milliseconds * 1_000_000
            journal.note("armed")
        case .reopen:
            guard let old = socket, let endpoint else { return }
            sockets.close(old)
            try endpoint.removeStaleFile()
            let new = try sockets.open(.router, options: [.routerMandatory(true)])
            try sockets.bind(new, to: endpoint)
            socket = new
            journal.note("reopened \(sockets.boxes.count)")
        }
    }

    mutating func received(_ message: Message, from socket: SocketID, _ sockets: SocketSet) throws {
        _ = try sockets.send(message, on: socket)
    }

    mutating func turnEnded(now: UInt64, _ sockets: SocketSet) throws -> UInt64? {
        if let due = deadline, now >= due {
            deadline = nil
            journal.note("due")
        }
        return deadline
    }

    mutating func stop(_ sockets: SocketSet) { journal.note("stop") }
}

// Serialized, because the tests count the threads and descriptors of the process.
@Suite(.serialized) struct PollThreadTests {
    private static func thread(_ endpoint: IPCEndpoint?, _ journal: Journal) throws -> PollThread<EchoHandler> {
        try PollThread(name: "echo") { EchoHandler(endpoint, journal) }
    }

    private static func ask(_ endpoint: IPCEndpoint, _ text: String) throws -> Message? {
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var dealer = try Socket(.dealer, in: context, options: [.receiveTimeout(30_000), .reconnectInterval(10)])
        try dealer.connect(endpoint)
        _ = try dealer.send([Frame(text)], wait: true)
        return try dealer.receive(wait: true)
    }

    @Test func `the handler receives messages and commands`() async throws {
        let folder = try TemporaryFolder()
        let journal = Journal()
        let thread = try Self.thread(folder.endpoint(), journal)
        try await thread.started()
        #expect(try Self.ask(folder.endpoint(), "hello") == ["hello"])
        for number in 0..<100 { #expect(thread.send(.say("\(number)")) == .accepted) }
        #expect(await thread.shutdown() == nil)
        #expect(journal.all == ["start"] + (0..<100).map(String.init) + ["stop"])
    }

    @Test func `a poll thread has the requested name`() async throws {
        let journal = Journal()
        let thread = try PollThread(name: "poll-name") { EchoHandler(nil, journal) }
        try await thread.started()
        #expect(ThisProcess.threadNames.contains("poll-name"))
        await thread.shutdown()
    }

    @Test func `the handler is called at its deadline`() async throws {
        let journal = Journal()
        let thread = try Self.thread(nil, journal)
        try await thread.started()
        thread.send(.wakeAfter(milliseconds: 20))
        await journal.wait(for: "due")
        await thread.shutdown()
    }

    @Test func `commands after shutdown are refused`() async throws {
        let journal = Journal()
        let thread = try Self.thread(nil, journal)
        try await thread.started()
        await thread.shutdown()
        #expect(thread.send(.say("late")) == .closed)
        #expect(await thread.shutdown() == nil)
        #expect(journal.all == ["start", "stop"])
    }

    @Test func `concurrent calls of shutdown all return`() async throws {
        let journal = Journal()
        let thread = try Self.thread(nil, journal)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { await thread.shutdown() } }
        }
        #expect(journal.all == ["start", "stop"])
    }

    @Test func `accepted commands are handled before the thread ends`() async throws {
        let journal = Journal()
        let thread = try Self.thread(nil, journal)
        let accepted = (0..<5_000).count { thread.send(.say("\($0)")) == .accepted }
        await thread.shutdown()
        #expect(journal.all.count == accepted + 2)
    }

    @Test func `too many waiting commands are refused`() async throws {
        let gate = NIOLockedValueBox(())
        let journal = Journal()
        let outcomes = try gate.withLockedValue { _ in
            // The handler cannot start before the lock is free, so no command is read.
            let thread = try PollThread(name: "full", commandLimit: 3) {
                gate.withLockedValue { _ in }
                return EchoHandler(nil, journal)
            }
            return (thread, (0..<5).map { thread.send(.say("\($0)")) })
        }
        #expect(outcomes.1 == [.accepted, .accepted, .accepted, .full, .full])
        await outcomes.0.shutdown()
        #expect(journal.all == ["start", "0", "1", "2", "stop"])
    }

    @Test func `an error in a handler’s callback stops the handler and ends the thread`() async throws {
        let folder = try TemporaryFolder()
        let journal = Journal()
        let thread = try Self.thread(folder.endpoint(), journal)
        try await thread.started()
        thread.send(.fail)
        #expect(await thread.ended() is EchoHandler.Broken)
        #expect(journal.all == ["start", "stop"])
        #expect(thread.send(.say("late")) == .closed)
        #expect(await thread.shutdown() is EchoHandler.Broken)
    }

    @Test func `an error in the handler’s start is thrown to the waiting caller`() async throws {
        let journal = Journal()
        let thread = try Self.thread(IPCEndpoint(path: "/nowhere/at/all"), journal)
        let error = await #expect(throws: ZeroMQError.self) { try await thread.started() }
        #expect(error?.call == "zmq_bind")
        await thread.shutdown()
    }

    @Test func `sockets can be opened and closed while the thread runs`() async throws {
        let folder = try TemporaryFolder()
        let journal = Journal()
        let thread = try Self.thread(folder.endpoint(), journal)
        try await thread.started()
        #expect(try Self.ask(folder.endpoint(), "a") == ["a"])
        thread.send(.reopen)
        await journal.wait(for: "reopened 1")
        #expect(try Self.ask(folder.endpoint(), "b") == ["b"])
        await thread.shutdown()
    }

    @Test func `an abandoned poll thread ends by itself`() async throws {
        let journal = Journal()
        do {
            let thread = try Self.thread(nil, journal)
            try await thread.started()
        }
        await journal.wait(for: "stop")
    }

    @Test func `opening and closing a hundred times leaks no thread or descriptor`() async throws {
        let folder = try TemporaryFolder()
        func once() async throws {
            let thread = try Self.thread(folder.endpoint(), Journal())
            try await thread.started()
            #expect(try Self.ask(folder.endpoint(), "x") == ["x"])
            await thread.shutdown()
        }
        try await once()
        let descriptors = ThisProcess.descriptors
        let threads = ThisProcess.threads
        for _ in 0..<100 { try await once() }
        // Other suites of the process may hold a few at this moment; a leak would be hundreds.
        #expect(ThisProcess.descriptors <= descriptors + 40)
        #expect(ThisProcess.threads <= threads + 20)
    }
}

import LibC
import TestSupport
import Testing

@testable import ZeroMQ

/// ETERM of zmq.h: the context was shut down before or during the call.
private let terminated: Int32 = 156_384_765

@Suite struct SocketTests {
    /// The receive timeout, which is long enough for a machine under load.
    private static let receiveTimeout = SocketOption.receiveTimeout(30_000)

    @Test(arguments: [
        [Frame("one")],
        [Frame("a"), Frame(""), Frame("c")],
        [Frame([UInt8](repeating: 7, count: 33)), Frame([UInt8](repeating: 8, count: 34))],
        [Frame([UInt8](repeating: 9, count: 300_000)), Frame([0, 0xff, 0])],
    ])
    func `a received message has the frames that were sent`(_ message: Message) throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var left = try Socket(.pair, in: context, options: [Self.receiveTimeout])
        var right = try Socket(.pair, in: context, options: [Self.receiveTimeout])
        try left.bind(folder.endpoint())
        try right.connect(folder.endpoint())
        #expect(try right.send(message, wait: true) == .sent)
        #expect(try left.receive(wait: true) == message)
        #expect(try left.receive() == nil)
        left.close()
        right.close()
    }

    @Test func `a router reports an unknown peer`() throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var router = try Socket(.router, in: context, options: [.routerMandatory(true)])
        try router.bind(folder.endpoint())
        #expect(try router.send(["nobody", "hello"]) == .unreachable)
    }

    @Test func `a router reports that a peer’s buffer is full`() throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var router = try Socket(
            .router, in: context, options: [.routerMandatory(true), .sendHighWaterMark(10), Self.receiveTimeout])
        try router.bind(folder.endpoint())
        var dealer = try Socket(
            .dealer, in: context, options: [.routingID(Array("slow#1".utf8)), .receiveHighWaterMark(10)])
        try dealer.connect(folder.endpoint())
        #expect(try dealer.send(["hi"], wait: true) == .sent)
        #expect(try router.receive(wait: true)?.first == "slow#1")
        let large = Frame([UInt8](repeating: 0, count: 100_000))
        var outcomes: Set<SendOutcome> = []
        for _ in 0..<1_000 { outcomes.insert(try router.send(["slow#1", large])) }
        #expect(outcomes == [.sent, .wouldBlock])
    }

    @Test func `a dealer without a peer accepts no message`() throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var dealer = try Socket(.dealer, in: context, options: [.immediate(true)])
        try dealer.connect(folder.endpoint())
        #expect(try dealer.send(["a", "b"]) == .wouldBlock)
        #expect(try dealer.receive() == nil)
    }

    @Test func `an extended publisher receives subscriptions as messages`() throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var publisher = try Socket(.extendedPublish, in: context, options: [.xpubVerbose(true), Self.receiveTimeout])
        try publisher.bind(folder.endpoint())
        var first = try Socket(.subscribe, in: context, options: [.subscribe(Array("a".utf8)), Self.receiveTimeout])
        try first.connect(folder.endpoint())
        #expect(try publisher.receive(wait: true) == [Frame([1] + Array("a".utf8))])
        var second = try Socket(.subscribe, in: context, options: [.subscribe(Array("a".utf8)), Self.receiveTimeout])
        try second.connect(folder.endpoint())
        #expect(try publisher.receive(wait: true) == [Frame([1] + Array("a".utf8))])
        #expect(try publisher.send(["abc", "1"]) == .sent)
        #expect(try publisher.send(["bcd", "2"]) == .sent)
        #expect(try first.receive(wait: true) == ["abc", "1"])
        #expect(try second.receive(wait: true) == ["abc", "1"])
        try second.set(.unsubscribe(Array("a".utf8)))
        try second.set(.subscribe(Array("b".utf8)))
        #expect(try publisher.receive(wait: true) == [Frame([1] + Array("b".utf8))])
        #expect(try publisher.send(["bcd", "3"]) == .sent)
        #expect(try second.receive(wait: true) == ["bcd", "3"])
    }

    @Test func `a slow subscriber loses messages and delays no other subscriber`() throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var publisher = try Socket(
            .extendedPublish, in: context, options: [.xpubVerbose(true), .sendHighWaterMark(50), Self.receiveTimeout])
        try publisher.bind(folder.endpoint())
        var subscriber = try Socket(
            .subscribe, in: context, options: [.subscribe([]), .receiveHighWaterMark(50), Self.receiveTimeout])
        try subscriber.connect(folder.endpoint())
        #expect(try publisher.receive(wait: true) == [Frame([1])])
        let payload = Frame([UInt8](repeating: 0, count: 20_000))
        for _ in 0..<5_000 { #expect(try publisher.send(["t", payload]) == .sent) }
        var received = 0
        while try subscriber.receive() != nil { received += 1 }
        #expect(received < 5_000)
    }

    @Test func `a message with too many frames is truncated, and the next one is whole`() throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var left = try Socket(.pair, in: context, options: [Self.receiveTimeout])
        var right = try Socket(.pair, in: context, options: [Self.receiveTimeout])
        try left.bind(folder.endpoint())
        try right.connect(folder.endpoint())
        #expect(try right.send(Message(repeating: "x", count: Socket.maximumFrames + 10), wait: true) == .sent)
        #expect(try right.send(["next"], wait: true) == .sent)
        #expect(try left.receive(wait: true)?.count == Socket.maximumFrames)
        #expect(try left.receive(wait: true) == ["next"])
    }

    @Test(arguments: [1, 4, 5, 9])
    func `a message that is read in place has the frames that were sent`(_ count: Int) throws {
        let folder = try TemporaryFolder()
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var left = try Socket(.pair, in: context, options: [Self.receiveTimeout])
        var right = try Socket(.pair, in: context, options: [Self.receiveTimeout])
        try left.bind(folder.endpoint())
        try right.connect(folder.endpoint())
        let long = (0..<count).map { Frame([UInt8](repeating: UInt8($0), count: 100 * $0)) }
        #expect(try right.send(long, wait: true) == .sent)
        #expect(try right.send(["short"], wait: true) == .sent)
        var received = ReceivedMessage()
        #expect(try left.receive(into: &received, wait: true))
        #expect(received.count == count)
        #expect(received.message == long)
        for index in 0..<min(count, 4) { #expect(long[index].isEqual(to: received.bytes(of: index))) }
        #expect(received.bytes(of: count).isEmpty)
        #expect(try left.receive(into: &received, wait: true))
        #expect(received.message == ["short"])
        received.clear()
        #expect(received.message.isEmpty)
        #expect(try !left.receive(into: &received))
    }

    @Test func `errors name the call and the endpoint`() throws {
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var socket = try Socket(.router, in: context)
        let nowhere = try IPCEndpoint(path: "/nowhere/at/all/socket")
        let error = #expect(throws: ZeroMQError.self) { try socket.bind(nowhere) }
        #expect(error?.call == "zmq_bind")
        #expect(error?.endpoint == "ipc:///nowhere/at/all/socket" || error?.endpoint == "ROUTER")
        let option = #expect(throws: ZeroMQError.self) { try socket.set(.routingID([])) }
        #expect(option?.call == "zmq_setsockopt(ZMQ_ROUTING_ID)")
        #expect(option?.errno == EINVAL)
    }

    @Test func `a closed socket refuses every call`() throws {
        let context = try ZeroMQContext()
        defer { context.terminate() }
        var socket = try Socket(.dealer, in: context)
        socket.close()
        socket.close()
        #expect(throws: ZeroMQError.self) { try socket.send(["x"]) }
        #expect(throws: ZeroMQError.self) { try socket.receive() }
        let nowhere = try IPCEndpoint(path: "/nowhere/at/all/socket")
        #expect(throws: ZeroMQError.self) { try socket.bind(nowhere) }
        let error = #expect(throws: ZeroMQError.self) { try socket.set(.linger(0)) }
        #expect(error?.errno == ENOTSOCK)
    }

    @Test func `a call on a context that was shut down fails with ETERM`() throws {
        let context = try ZeroMQContext()
        var socket = try Socket(.dealer, in: context)
        context.shutdown()
        let error = #expect(throws: ZeroMQError.self) { try socket.receive() }
        #expect(error?.errno == terminated)
        socket.close()
        context.terminate()
        context.terminate()
        let late = #expect(throws: ZeroMQError.self) { _ = try Socket(.dealer, in: context) }
        #expect(late?.errno == terminated)
    }

    @Test func `a path that is too long for a socket is refused with its length`() throws {
        let fits = "/" + String(repeating: "a", count: IPCEndpoint.maximumPathLength - 1)
        #expect(try IPCEndpoint(path: fits).text == "ipc://" + fits)
        let error = #expect(throws: ZeroMQError.self) { try IPCEndpoint(path: fits + "b") }
        #expect(error?.errno == ENAMETOOLONG)
        #expect(error?.description.contains("\(IPCEndpoint.maximumPathLength + 1) bytes") == true)
        #expect(throws: ZeroMQError.self) { try IPCEndpoint(path: "") }
    }

    @Test func `the descriptor limit is raised and never lowered`() throws {
        let before = Int(clamping: try FileDescriptorLimit.read().rlim_cur)
        let raised = try FileDescriptorLimit.raise()
        #expect(raised >= before)
        #expect(try FileDescriptorLimit.raise(to: 1) == raised)
    }
}

@Suite struct FrameTests {
    @Test func `a frame has the bytes that it was created with`() {
        #expect(Frame("ä").bytes == [0xc3, 0xa4])
        #expect(Frame([0xc3, 0xa4]).text == "ä")
        #expect(Frame([0xff]).text == nil)
        #expect(Frame(copying: [1, 2, 3][1...]) == Frame([2, 3]))
        #expect(Frame("abc").withUnsafeBytes { Array($0) } == Array("abc".utf8))
        #expect(Frame.empty.isEmpty && Frame("ab").count == 2)
        #expect(Frame([0xff]).description == "1 bytes")
    }
}

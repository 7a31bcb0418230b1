import LibC
import NIOCore
import NIOHTTP1

/// Answers the requests of one connection from the script. It is used only on its channel’s event loop.
final class ScriptedResponder: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let script: ScriptedPaths
    private var head: HTTPRequestHead?
    private var isAnswering = false

    init(_ script: ScriptedPaths) {
        self.script = script
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end:
            guard let head else { return }
            self.head = nil
            answer(head, context: context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        ended()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func ended() {
        guard isAnswering else { return }
        isAnswering = false
        script.ended()
    }

    private func answer(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let request = HTTPTestRequest(
            method: head.method.rawValue, path: parts.first.map(String.init) ?? "/",
            query: parts.count > 1 ? String(parts[1]) : "", headers: head.headers.map { ($0.name, $0.value) })
        isAnswering = true
        let plan = AnswerPlan(script.next(request), to: request)
        switch plan.response.fault {
        case .close(afterBytes: ..<0): context.close(promise: nil)
        case .stall(afterBytes: ..<0): stall(plan, context: context) { $0.start(plan, context: $1) }
        default: start(plan, context: context)
        }
    }

    private func start(_ plan: AnswerPlan, context: ChannelHandlerContext) {
        let head = HTTPResponseHead(
            version: plan.response.endsWithConnection ? .http1_0 : .http1_1,
            status: HTTPResponseStatus(statusCode: plan.status),
            headers: HTTPHeaders(plan.headers.map { ($0.name, $0.value) }))
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        send(plan, from: plan.range.lowerBound, context: context)
    }

    /// Sends the next chunk, then itself again once that is written.
    private func send(_ plan: AnswerPlan, from offset: Int, context: ChannelHandlerContext) {
        let sent = offset - plan.range.lowerBound
        var limit = min(plan.response.chunkSize, plan.range.upperBound - offset)
        switch plan.response.fault {
        case .close(let bytes) where bytes >= 0:
            guard sent < bytes else { return context.close(promise: nil) }
            limit = min(limit, bytes - sent)
        case .reset(let bytes):
            guard sent < bytes else { return reset(context: context) }
            limit = min(limit, bytes - sent)
        case .cut(let byte):
            guard offset < byte else { return context.close(promise: nil) }
            limit = min(limit, byte - offset)
        case .stall(let bytes) where bytes >= 0 && !plan.isReleased:
            guard sent < bytes else {
                return stall(plan, context: context) { $0.send(plan.released, from: offset, context: $1) }
            }
            limit = min(limit, bytes - sent)
        default: break
        }
        guard limit > 0 else { return finish(plan, context: context) }
        let bytes = plan.response.body.bytes(from: offset, limit: limit)
        let written = context.eventLoop.makePromise(of: Void.self)
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let next = offset + limit
        let interval = TimeAmount.milliseconds(Int64(plan.response.chunkInterval))
        written.futureResult.whenSuccess {
            guard interval.nanoseconds > 0 else {
                return loopBound.value.0.send(plan, from: next, context: loopBound.value.1)
            }
            loopBound.value.1.eventLoop.scheduleTask(in: interval) {
                loopBound.value.0.send(plan, from: next, context: loopBound.value.1)
            }
        }
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: written)
    }

    private func reset(context: ChannelHandlerContext) {
        let channel = context.channel
        guard let socket = channel as? any SocketOptionProvider else { return channel.close(promise: nil) }
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in channel.close(promise: nil) }
    }

    private func finish(_ plan: AnswerPlan, context: ChannelHandlerContext) {
        ended()
        let channel = context.channel
        let endsWithConnection = plan.response.endsWithConnection
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
            if endsWithConnection { channel.close(promise: nil) }
        }
    }

    /// Waits for the path to be released, then continues on the event loop.
    private func stall(
        _ plan: AnswerPlan, context: ChannelHandlerContext,
        then go: @escaping @Sendable (ScriptedResponder, ChannelHandlerContext) -> Void
    ) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let eventLoop = context.eventLoop
        script.stall(at: plan.path) {
            eventLoop.execute {
                guard loopBound.value.1.channel.isActive else { return }
                go(loopBound.value.0, loopBound.value.1)
            }
        }
    }
}

/// A response applied to a request: conditional, partial or whole.
struct AnswerPlan: Sendable {
    let response: HTTPTestResponse
    let path: String
    private(set) var status: Int
    private(set) var headers: [(name: String, value: String)]
    /// The range of the body that is sent.
    private(set) var range: Range<Int>
    private(set) var isReleased = false

    /// The plan after its stall has ended.
    var released: AnswerPlan {
        var copy = self
        copy.isReleased = true
        return copy
    }

    init(_ response: HTTPTestResponse, to request: HTTPTestRequest) {
        self.response = response
        path = request.path
        status = response.status
        headers = response.headers
        let count = response.body.count
        range = 0..<count
        if let etag = response.etag { headers.append(("ETag", etag)) }
        if let date = response.lastModified { headers.append(("Last-Modified", date)) }
        guard !Self.isUnchanged(response, request) else {
            status = 304
            range = 0..<0
            return
        }
        if response.acceptsRanges {
            headers.append(("Accept-Ranges", "bytes"))
            if status == 200, Self.isSame(response, request), let wanted = request.range(of: count) {
                status = wanted.isEmpty ? 416 : 206
                range = wanted
                let span = wanted.isEmpty ? "*" : "\(wanted.lowerBound)-\(wanted.upperBound - 1)"
                headers.append(("Content-Range", "bytes \(span)/\(count)"))
            }
        }
        if response.endsWithConnection {
            headers.append(("Connection", "close"))
        } else if response.announcesLength {
            headers.append(("Content-Length", String(response.claimedLength ?? range.count)))
        } else {
            headers.append(("Transfer-Encoding", "chunked"))
        }
        if request.method == "HEAD" { range = 0..<0 }
    }

    /// Whether a requested range still belongs to the same content (`If-Range`).
    private static func isSame(_ response: HTTPTestResponse, _ request: HTTPTestRequest) -> Bool {
        request.header("If-Range").map { $0 == response.etag || $0 == response.lastModified } ?? true
    }

    private static func isUnchanged(_ response: HTTPTestResponse, _ request: HTTPTestRequest) -> Bool {
        guard response.status == 200 else { return false }
        if let match = request.header("If-None-Match") { return match == response.etag }
        guard let since = request.header("If-Modified-Since") else { return false }
        return since == response.lastModified
    }
}

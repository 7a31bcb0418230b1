import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages
import ZeroMQ

/// A client with one blocking socket, so that a client library’s cost isn’t measured.
final class RawClient {
    private var socket: Socket
    private let fleet: BenchFleet

    init(_ fleet: BenchFleet) throws {
        self.fleet = fleet
        socket = try Socket(
            .dealer, in: fleet.context, options: [.linger(0), .reconnectInterval(10), .receiveTimeout(10_000)])
        try socket.connect(fleet.endpoint("cli.sock"))
    }

    deinit {
        socket.close()
    }

    /// Sends a request without waiting for the reply.
    func send(_ service: ServiceName, _ payload: [UInt8], id: RequestID = .random()) throws {
        let header = BusHeader(.request, time: UInt64(monotonicSeconds() * 1e9) + 10_000_000_000)
        _ = try socket.send(
            [Frame(header.encoded), Frame(id.bytes), Frame(service.text), Frame("bench"), Frame(payload)], wait: true)
    }

    /// Returns the next reply; nil after ten seconds without one.
    func receive() throws -> (header: BusHeader, id: [UInt8], payload: [UInt8])? {
        guard let message = try socket.receive(wait: true), message.count == 3 else { return nil }
        return (try BusHeader(decoding: message[0].bytes), message[1].bytes, message[2].bytes)
    }

    /// Sends a request and waits for its reply.
    @discardableResult
    func ask(_ service: ServiceName, _ request: some SwiftProtobuf.Message) throws -> [UInt8] {
        let id = RequestID.random()
        try send(service, request.wireBytes, id: id)
        var answer = try receive()
        // The reply to an abandoned request may arrive late.
        while let other = answer, other.id != id.bytes { answer = try receive() }
        guard let answer else { throw BenchFleet.Failed(description: "\(service) does not answer") }
        guard answer.header.kind == .reply else {
            let failure = (try? WireFailure(wireBytes: answer.payload)) ?? WireFailure()
            throw BenchFleet.Failed(description: "\(service): \(failure.code) \(failure.message)")
        }
        return answer.payload
    }

    /// Sets the timeout for replies.
    func wait(seconds: Int32) throws { try socket.set(.receiveTimeout(seconds * 1_000)) }

    /// Repeats the request until the service itself has answered, perhaps with a refusal, and returns the seconds.
    func untilServed(_ service: ServiceName, _ request: some SwiftProtobuf.Message, since start: Double) throws
        -> Double
    {
        try socket.set(.receiveTimeout(4))
        defer { try? socket.set(.receiveTimeout(10_000)) }
        var sent: Set<[UInt8]> = []
        while monotonicSeconds() - start < 30 {
            let id = RequestID.random()
            sent.insert(id.bytes)
            try send(service, request.wireBytes, id: id)
            // The reply to an earlier request isn’t about the current state.
            guard let answer = try receive(), sent.contains(answer.id) else { continue }
            if answer.header.kind == .reply { return monotonicSeconds() - start }
            let refusal = (try? WireFailure(wireBytes: answer.payload))?.code ?? ""
            if ["invalidArgument", "notFound", "notSubscribed"].contains(refusal) { return monotonicSeconds() - start }
            usleep(2_000)
        }
        throw BenchFleet.Failed(description: "\(service) did not come back within 30 s")
    }

    /// Returns the ID of the podcast whose title begins with `title`.
    func podcast(titled title: String) throws -> String {
        let answer = try ask(.persistence, WirePersistenceRequest.with { $0.podcasts = WirePodcastsQuery() })
        let podcasts = try WirePersistenceReply(wireBytes: answer).podcasts.podcasts
        guard let podcast = podcasts.first(where: { $0.title.hasPrefix(title) }) else {
            throw BenchFleet.Failed(description: "there is no podcast “\(title)”")
        }
        return podcast.id
    }

    /// Returns the IDs of episodes, of one podcast or of all, the newest first.
    func episodes(limit: Int, podcast: String = "") throws -> [String] {
        var ids: [String] = []
        var query = WireEpisodesQuery()
        query.podcast = podcast
        query.limit = UInt32(min(500, limit))
        while ids.count < limit {
            let request = WirePersistenceRequest.with { $0.episodes = query }
            let page = try WirePersistenceReply(wireBytes: ask(.persistence, request)).episodes
            ids += page.episodes.map(\.id)
            guard !page.next.isEmpty else { break }
            query.after = page.next
        }
        return Array(ids.prefix(limit))
    }
}

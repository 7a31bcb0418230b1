import PodcastModel
import ZeroMQ

/// The requests in flight to services, each with its client. A repeat joins the request under its ticket.
struct InFlightRequests: Sendable {
    struct Request: Sendable, Hashable {
        var client: Frame
        var id: Frame
        var serviceIndex: Int
        var deadline: MonotonicTime
        var bytes = 0
    }

    private struct Client {
        var tickets: [Frame: UInt64] = [:]
        var bytes = 0
    }

    private var requests: [UInt64: Request] = [:]
    /// The tickets of each client by request ID, and the size of its requests.
    private var clients: [Frame: Client] = [:]
    private var lastTicket: UInt64 = 0
    /// A lower bound of the requests’ deadlines; nil if there are none.
    private(set) var nextDeadline: MonotonicTime?

    var count: Int { requests.count }
    var clientCount: Int { clients.count }

    func count(of client: Frame) -> Int { clients[client]?.tickets.count ?? 0 }

    func bytes(of client: Frame) -> Int { clients[client]?.bytes ?? 0 }

    subscript(ticket: UInt64) -> Request? { requests[ticket] }

    /// The ticket of an earlier request of the client with this ID that is still in flight to that service.
    func ticket(of id: Frame, client: Frame, serviceIndex: Int) -> UInt64? {
        guard let ticket = clients[client]?.tickets[id], requests[ticket]?.serviceIndex == serviceIndex else {
            return nil
        }
        return ticket
    }

    mutating func insert(_ request: Request) -> UInt64 {
        lastTicket += 1
        requests[lastTicket] = request
        clients[request.client, default: Client()].tickets[request.id] = lastTicket
        clients[request.client]?.bytes += request.bytes
        nextDeadline = min(nextDeadline ?? request.deadline, request.deadline)
        return lastTicket
    }

    mutating func remove(_ ticket: UInt64) -> Request? {
        guard let request = requests.removeValue(forKey: ticket) else { return nil }
        clients[request.client]?.bytes -= request.bytes
        if clients[request.client]?.tickets[request.id] == ticket { clients[request.client]?.tickets[request.id] = nil }
        if clients[request.client]?.tickets.isEmpty == true { clients[request.client] = nil }
        if requests.isEmpty { nextDeadline = nil }
        return request
    }

    /// The tickets at one service, in order of arrival.
    func tickets(at serviceIndex: Int) -> [UInt64] {
        requests.filter { $0.value.serviceIndex == serviceIndex }.keys.sorted()
    }

    /// The tickets whose deadline has passed, in order of arrival.
    mutating func expired(at now: MonotonicTime) -> [UInt64] {
        guard let next = nextDeadline, next <= now else { return [] }
        nextDeadline = requests.values.lazy.map(\.deadline).filter { $0 > now }.min()
        return requests.filter { $0.value.deadline <= now }.keys.sorted()
    }
}

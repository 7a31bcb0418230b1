import PodcastModel
import WireMessages
import ZeroMQ

/// The services that have introduced themselves: a place for each name, kept for the life of the bus.
struct ServiceRegistry: Sendable {
    /// Where a service's life stands. starting → ready → down; each HELLO leads back to starting.
    enum State: Sendable, Hashable {
        case starting
        case ready
        case down
    }

    /// Publishes that have their places and wait for one acknowledgement: neighbours in the stream.
    struct Unacknowledged: Sendable, Hashable {
        var count: UInt32
        var lastOrigin: UInt64
        var lastSequence: UInt64
    }

    struct Service: Sendable {
        let name: ServiceName
        let rule: TopicRule
        var generation: UInt32
        var routingID: Frame
        var state: State
        /// Counts the HELLOs of all services: what was put under an older number is swept at READY.
        var life: UInt64
        /// False once a message of its was lost: nothing is accepted before the next HELLO.
        var greeted = true
        /// The origin sequence of its last publish that was accepted or refused.
        var origin: UInt64 = 0
        var lastHeard: MonotonicTime
        var requests = 0
        /// Publishes since acknowledgements last went out.
        var waiting = 0
        var unacknowledged: Unacknowledged?
    }

    /// What a HELLO leads to.
    enum Greeting: Sendable, Hashable {
        /// Registered at this place. `replaced` is the routing id of a smaller generation that is fenced by it.
        case welcome(place: Int, replaced: Frame?)
        case fenced
        case full
    }

    private(set) var services: [Service] = []
    private var places: [ServiceName: Int] = [:]
    private var peers: [Frame: Int] = [:]
    private var lives: UInt64 = 0
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    subscript(place: Int) -> Service {
        _read { yield services[place] }
        _modify { yield &services[place] }
    }

    /// The place of the service whose present generation has this routing id.
    func place(of peer: Frame) -> Int? { peers[peer] }

    func place(named name: ServiceName) -> Int? { places[name] }

    /// Registers a service, or starts it over.
    mutating func greet(_ name: ServiceName, generation: UInt32, routingID: Frame, now: MonotonicTime) -> Greeting {
        guard let place = places[name] else {
            guard services.count < limit else { return .full }
            lives += 1
            services.append(
                Service(
                    name: name, rule: TopicRule(owner: name), generation: generation, routingID: routingID,
                    state: .starting, life: lives, lastHeard: now))
            places[name] = services.count - 1
            peers[routingID] = services.count - 1
            return .welcome(place: services.count - 1, replaced: nil)
        }
        let old = services[place]
        guard generation >= old.generation else { return .fenced }
        lives += 1
        services[place] = Service(
            name: name, rule: old.rule, generation: generation, routingID: routingID, state: .starting, life: lives,
            lastHeard: now, requests: old.requests)
        peers[old.routingID] = nil
        peers[routingID] = place
        return .welcome(place: place, replaced: generation > old.generation ? old.routingID : nil)
    }

    /// Counts everybody's silence from now on.
    mutating func forgiveSilence(_ now: MonotonicTime) {
        for place in services.indices { services[place].lastHeard = now }
    }

    /// Whether a peer that is not registered is the smaller generation of one that is. Reads `name#generation`.
    func isFenced(_ peer: Frame) -> Bool {
        guard let (name, generation) = Self.parts(of: peer), let place = places[name] else { return false }
        return generation < services[place].generation
    }

    /// The name and the generation in a service's routing id.
    static func parts(of peer: Frame) -> (name: ServiceName, generation: UInt32)? {
        guard let text = peer.text, let mark = text.firstIndex(of: "#"),
            let name = ServiceName(String(text[..<mark])), let generation = UInt32(text[text.index(after: mark)...])
        else { return nil }
        return (name, generation)
    }

    /// `name#generation` of each service that is READY, a line each, in order.
    var readyList: Frame {
        Frame(services.filter { $0.state == .ready }.compactMap(\.routingID.text).sorted().joined(separator: "\n"))
    }
}

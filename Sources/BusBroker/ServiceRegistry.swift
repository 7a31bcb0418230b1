import PodcastModel
import WireMessages
import ZeroMQ

/// The registered services by index; the index of a forgotten service is reused.
struct ServiceRegistry: Sendable {
    /// A service’s state: starting → ready → down; each HELLO resets it to starting.
    enum State: Sendable, Hashable {
        case starting
        case ready
        case down
    }

    /// A run of publishes with consecutive sequences that one acknowledgement covers.
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
        /// A counter of all services’ HELLOs: values put under an older number are deleted at READY.
        var registration: UInt64
        /// Whether the service is registered. After a lost message the bus ignores it until its next HELLO.
        var isRegistered = true
        /// The origin sequence of its last accepted or rejected publish.
        var origin: UInt64 = 0
        var lastHeard: MonotonicTime
        var requests = 0
        var requestBytes = 0
        /// The time at which the service went down; nil if it isn’t down.
        var downSince: MonotonicTime?
        /// Whether its index may be given to another name.
        var isForgotten = false
        /// The number of publishes since the last acknowledgement.
        var waiting = 0
        var unacknowledged: Unacknowledged?

        /// The payload of its retained status.
        var status: Frame {
            var status = WireServiceStatus()
            status.name = name.text
            status.generation = generation
            status.state =
                switch state {
                case .starting: .starting
                case .ready: .ready
                case .down: .down
                }
            return Frame(status.wireBytes)
        }
    }

    /// The outcome of a HELLO.
    enum Greeting: Sendable, Hashable {
        /// Registered at this index. `replaced` is the routing ID of the older generation that it fences.
        case welcome(index: Int, replaced: Frame?)
        /// The generation is stale: this newer one is registered.
        case fenced(UInt32)
        case full
    }

    /// The fleet’s own services: their names are never forgotten and don’t count toward the limit.
    static let fleet = Set(ServiceCatalog.all.map(\.name)).subtracting([.bus])

    private(set) var services: [Service] = []
    private var indexByName: [ServiceName: Int] = [:]
    /// The index that was found last, which is checked first, because bursts have one sender.
    private var lastSender = 0
    private var registrations: UInt64 = 0
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    subscript(index: Int) -> Service {
        _read { yield services[index] }
        _modify { yield &services[index] }
    }

    /// The index of the service whose current generation has this routing ID.
    mutating func index(of peer: UnsafeRawBufferPointer) -> Int? {
        if lastSender < services.count, isRoutingID(peer, of: lastSender) { return lastSender }
        guard let index = services.indices.first(where: { isRoutingID(peer, of: $0) }) else { return nil }
        lastSender = index
        return index
    }

    private func isRoutingID(_ peer: UnsafeRawBufferPointer, of index: Int) -> Bool {
        !services[index].isForgotten && services[index].routingID.isEqual(to: peer)
    }

    func index(named name: ServiceName) -> Int? { indexByName[name] }

    /// Registers a service, or resets its registration.
    mutating func register(_ name: ServiceName, generation: UInt32, routingID: Frame, now: MonotonicTime) -> Greeting {
        guard let index = indexByName[name] else {
            guard hasRoom(for: name) else { return .full }
            registrations += 1
            let service = Service(
                name: name, rule: TopicRule(owner: name), generation: generation, routingID: routingID,
                state: .starting, registration: registrations, lastHeard: now)
            let index = services.firstIndex(where: \.isForgotten) ?? services.count
            if index == services.count { services.append(service) } else { services[index] = service }
            indexByName[name] = index
            return .welcome(index: index, replaced: nil)
        }
        let old = services[index]
        guard generation >= old.generation else { return .fenced(old.generation) }
        registrations += 1
        services[index] = Service(
            name: name, rule: old.rule, generation: generation, routingID: routingID, state: .starting,
            registration: registrations,
            lastHeard: now, requests: old.requests, requestBytes: old.requestBytes)
        return .welcome(index: index, replaced: generation > old.generation ? old.routingID : nil)
    }

    var count: Int { indexByName.count }

    /// Whether a new name can be registered without forgetting another service.
    func hasRoom(for name: ServiceName) -> Bool {
        Self.fleet.contains(name) || indexByName.keys.count { !Self.fleet.contains($0) } < limit
    }

    /// The services outside the fleet that are down, in the order in which they went down.
    func forgettable() -> [Int] {
        services.indices.filter { index in
            let service = services[index]
            return !service.isForgotten && service.downSince != nil && !Self.fleet.contains(service.name)
        }
        .sorted { left, right in
            services[left].downSince ?? services[left].lastHeard < services[right].downSince
                ?? services[right].lastHeard
        }
    }

    /// Frees a name and its index. The service must have nothing retained or in flight.
    mutating func forget(_ index: Int) {
        indexByName[services[index].name] = nil
        services[index].isForgotten = true
        services[index].isRegistered = false
        services[index].state = .down
        services[index].unacknowledged = nil
    }

    /// Restarts the measurement of every service’s silence.
    mutating func restartSilence(_ now: MonotonicTime) {
        for index in services.indices { services[index].lastHeard = now }
    }

    /// The registered generation, if the unregistered peer `name#generation` is an older one of the same service.
    func generationFencing(_ peer: Frame) -> UInt32? {
        guard let (name, generation) = Self.parts(of: peer), let index = indexByName[name] else { return nil }
        let registered = services[index].generation
        return generation < registered ? registered : nil
    }

    /// Parses a service’s routing ID into name and generation.
    static func parts(of peer: Frame) -> (name: ServiceName, generation: UInt32)? {
        guard let text = peer.text, let mark = text.firstIndex(of: "#"),
            let name = ServiceName(String(text[..<mark])), let generation = UInt32(text[text.index(after: mark)...]),
            // A generation has exactly one routing ID: no leading zero, no sign.
            text == "\(name.text)#\(generation)"
        else { return nil }
        return (name, generation)
    }

    /// The line `name#generation` for each service that is READY, sorted.
    var readyList: Frame {
        Frame(services.filter { $0.state == .ready }.compactMap(\.routingID.text).sorted().joined(separator: "\n"))
    }
}

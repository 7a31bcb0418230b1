import PodcastModel
package import WireMessages

/// A client’s FETCH: the stream from a position.
package struct FetchRequest: Sendable, Hashable {
    /// The nonce of the join that it belongs to.
    package var nonce: String
    /// The position of the first event to fetch; if epoch and sequence are 0, everything is fetched.
    package var from: StreamPosition
    /// Whether to send a snapshot even if the ring covers the events.
    package var forceSnapshot: Bool
    /// The prefixes, in UTF-8, of the topics that a snapshot must contain; nil if it must contain every topic.
    package var includedPrefixes: [[UInt8]]?
}

/// The client’s side of joins, gaps and restarts (`protocols/bus.md`); it turns events into effects.
///
/// It holds no socket and no clock. The shell opens sockets (`open`), passes it what they receive, and calls it at
/// `deadline`.
struct StreamReducer: Sendable {
    struct Limits: Sendable, Hashable {
        /// The silence that ends a connection: three heartbeats.
        var silence: Duration = .milliseconds(1_500)
        /// The waits for a reply to a join, after which the next join begins.
        var joinBackoff = Backoff.exponential(first: .milliseconds(1_500), longest: .seconds(6))
        /// The maximum pause in a reply to a fetch.
        var fetch: Duration = .seconds(2)
        /// The maximum wait for the first chunk while it is unknown whether the bus supports prefixes in a fetch.
        var firstFetchWithPrefixes: Duration = .milliseconds(400)
        /// The time for which values of an earlier epoch are shown while their services are not ready.
        var staleValues: Duration = .seconds(60)
        /// The maximum number of events, and of bytes of payload, that wait for a reply to a fetch.
        var bufferedEvents = 4_096
        var bufferedBytes = 8 << 20
    }

    enum Event: Sendable {
        case start
        /// A sequenced event arrived; topic and payload of one that isn’t selected may be empty.
        case stream(StreamEvent)
        case live(StreamEvent)
        case heartbeat(epoch: UInt64, head: UInt64)
        /// The subscription of a join is active.
        case sync(nonce: String, epoch: UInt64, head: UInt64)
        case chunk(FetchChunk)
        case tick
    }

    enum Effect: Sendable {
        /// Closes any open sockets, opens new ones with subscriptions to `stream/`, `bus/heartbeat` and `sync/<nonce>`,
        /// and connects them.
        case open(nonce: String)
        case fetch(FetchRequest)
        case update(ReplicaUpdate)
    }

    private enum Phase {
        case idle
        case syncing(until: MonotonicTime)
        case fetching(Fetch)
        case live
    }

    private struct Fetch {
        var deadline: MonotonicTime
        /// The last event that was known when the fetch was sent.
        var from: UInt64
        var entries: [StreamEvent] = []
    }

    private(set) var replica = Replica()
    private(set) var connection = ConnectionState.connecting
    /// The number of messages that didn’t match the current state, for a log.
    private(set) var ignored = 0

    private let limits: Limits
    private let selection: TopicSelection
    private let seed: UInt64
    private var joins: UInt64 = 0
    private var silentJoins = 0
    private var nonce = ""
    private var epoch: UInt64 = 0
    private var phase = Phase.idle
    private var lastHeard = MonotonicTime(nanoseconds: 0)
    private var failedFetches = 0
    /// Whether the bus supports the selection’s prefixes; nil if that is unknown. An earlier version treats such a
    /// FETCH as malformed and doesn’t answer.
    private var knowsPrefixes: Bool?
    /// The time at which values of an earlier epoch are dropped; nil if there are none.
    private var staleValuesUntil: MonotonicTime?
    private var buffer: [StreamEvent] = []
    private var bufferBytes = 0

    /// Creates a reducer with an empty replica. `seed` makes its nonces differ from those of other clients.
    init(seed: UInt64, selection: TopicSelection = .all, limits: Limits = Limits()) {
        self.seed = seed
        self.selection = selection
        self.limits = limits
    }

    /// The time at which `tick` is due; nil means never.
    var deadline: MonotonicTime? {
        switch phase {
        case .idle: nil
        case .syncing(let until): until
        case .fetching(let fetch): fetch.deadline
        case .live: min(silenceDeadline, staleValuesUntil ?? silenceDeadline)
        }
    }

    private var silenceDeadline: MonotonicTime { lastHeard.advanced(by: limits.silence) }

    mutating func handle(_ event: Event, now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .start:
            guard case .idle = phase else { break }
            effects.append(.update(.connection(.connecting)))
            join(now, &effects)
        case .stream(let event): received(event, now, &effects)
        case .live(let event):
            if case .live = phase { effects.append(.update(.live(event))) }
        case .heartbeat(let epoch, let head): heartbeat(epoch, head, now, &effects)
        case .sync(let nonce, let epoch, _): synced(nonce, epoch, now, &effects)
        case .chunk(let chunk): received(chunk, now, &effects)
        case .tick:
            if case .live = phase { dropStaleValues(now, &effects) }
            guard let deadline, now >= deadline else { break }
            recoverFromSilence(now, &effects)
        }
        return effects
    }
}

// MARK: - Joining

extension StreamReducer {
    private mutating func join(_ now: MonotonicTime, _ effects: inout [Effect]) {
        joins += 1
        nonce = Self.nonce(seed, joins)
        clearBuffer()
        failedFetches = 0
        phase = .syncing(until: now.advanced(by: limits.joinBackoff.wait(after: silentJoins + 1)))
        effects.append(.open(nonce: nonce))
    }

    /// A nonce of 32 characters of 0-9a-f: the seed, then the count.
    private static func nonce(_ seed: UInt64, _ count: UInt64) -> String {
        func digits(_ value: UInt64) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return digits(seed) + digits(count)
    }

    /// Joins again because the bus was replaced: all pending work belongs to the old one.
    private mutating func rejoin(_ now: MonotonicTime, _ effects: inout [Effect]) {
        show(.resyncing, &effects)
        silentJoins = 0
        join(now, &effects)
    }

    private mutating func recoverFromSilence(_ now: MonotonicTime, _ effects: inout [Effect]) {
        if case .fetching(let fetch) = phase, fetch.entries.isEmpty { knowsPrefixes = false }
        switch (phase, connection) {
        case (.live, _), (_, .live), (_, .resyncing): show(.disconnected(since: lastHeard), &effects)
        default: break
        }
        silentJoins += 1
        join(now, &effects)
    }

    private mutating func synced(_ nonce: String, _ epoch: UInt64, _ now: MonotonicTime, _ effects: inout [Effect]) {
        guard nonce == self.nonce else {
            ignored += 1
            return
        }
        lastHeard = now
        switch phase {
        case .idle: return
        case .syncing: break
        // The sockets have reconnected automatically. A late chunk could be mistaken for one of the next answer.
        case .fetching: return rejoin(now, &effects)
        // Connected to another bus: all pending work belongs to the old one.
        case .live: if epoch != self.epoch { return rejoin(now, &effects) }
        }
        silentJoins = 0
        // This epoch is authoritative, even if it is smaller than the last one.
        if epoch != self.epoch || epoch != replica.position.epoch { show(.resyncing, &effects) }
        if case .disconnected = connection { show(.resyncing, &effects) }
        // The new bus may support prefixes, or the former bus supported them but answered too late.
        if epoch != self.epoch { knowsPrefixes = nil }
        self.epoch = epoch
        buffer.removeAll { $0.header.epoch != epoch }
        bufferBytes = buffer.reduce(0) { $0 + $1.payload.count }
        fetch(now, &effects)
    }

    private mutating func fetch(_ now: MonotonicTime, _ effects: inout [Effect]) {
        let known = replica.position.epoch == epoch
        let from =
            known
            ? StreamPosition(epoch: epoch, sequence: replica.position.sequence + 1)
            : StreamPosition(epoch: 0, sequence: 0)
        let forced = failedFetches >= 2
        if forced { show(.resyncing, &effects) }
        var request = FetchRequest(nonce: nonce, from: from, forceSnapshot: forced)
        if knowsPrefixes != false { request.includedPrefixes = selection.prefixesToInclude }
        let isTrial = request.includedPrefixes != nil && knowsPrefixes == nil
        let wait = isTrial ? limits.firstFetchWithPrefixes : limits.fetch
        phase = .fetching(Fetch(deadline: now.advanced(by: wait), from: from.sequence))
        effects.append(.fetch(request))
    }
}

// MARK: - Messages

extension StreamReducer {
    private mutating func received(_ event: StreamEvent, _ now: MonotonicTime, _ effects: inout [Effect]) {
        lastHeard = now
        switch phase {
        case .idle: ignored += 1
        case .syncing: keep(event)
        case .fetching:
            guard event.header.epoch == epoch else { return rejoin(now, &effects) }
            keep(event)
        case .live:
            guard event.header.epoch == epoch else { return rejoin(now, &effects) }
            switch event.header.sequence {
            case replica.position.sequence + 1: apply(event, &effects)
            case ...replica.position.sequence: ignored += 1
            default:
                keep(event)
                fetch(now, &effects)
            }
        }
    }

    private mutating func heartbeat(
        _ epoch: UInt64, _ head: UInt64, _ now: MonotonicTime, _ effects: inout [Effect]
    ) {
        lastHeard = now
        switch phase {
        case .idle, .syncing: break
        case .fetching:
            if epoch != self.epoch { rejoin(now, &effects) }
        case .live:
            guard epoch == self.epoch else { return rejoin(now, &effects) }
            // Events and heartbeats arrive in order on one socket, so this is a loss and not a race.
            if head > replica.position.sequence { fetch(now, &effects) }
        }
    }

    private mutating func received(_ chunk: FetchChunk, _ now: MonotonicTime, _ effects: inout [Effect]) {
        guard case .fetching(var fetch) = phase, chunk.nonce == nonce else {
            ignored += 1
            return
        }
        guard chunk.epoch == epoch else { return rejoin(now, &effects) }
        lastHeard = now
        knowsPrefixes = knowsPrefixes ?? true
        // The phase holds the only other reference to the entries: it is reset, so that appending copies nothing.
        phase = .idle
        fetch.entries += chunk.isSnapshot ? chunk.entries.filter { selection.contains($0.topic) } : chunk.entries
        fetch.deadline = now.advanced(by: limits.fetch)
        guard !chunk.more else {
            phase = .fetching(fetch)
            return
        }
        if chunk.isSnapshot {
            show(.resyncing, &effects)
            replica.replace(
                at: StreamPosition(epoch: epoch, sequence: chunk.head), ready: chunk.ready, entries: fetch.entries)
            staleValuesUntil = replica.hasStaleValues ? now.advanced(by: limits.staleValues) : nil
            effects.append(.update(.snapshot(replica)))
        } else {
            replay(fetch.entries, &effects)
            // A replay with events made progress, even if more were lost meanwhile; the next one continues from there.
            if replica.position.sequence >= fetch.from { failedFetches = 0 }
            guard replica.position.sequence == chunk.head else { return failed(now, &effects) }
        }
        catchUp(now, &effects)
    }

    private mutating func replay(_ entries: [StreamEvent], _ effects: inout [Effect]) {
        for event in entries where event.header.epoch == epoch && event.header.kind.isSequenced {
            if event.header.sequence == replica.position.sequence + 1 { apply(event, &effects) }
        }
    }

    private mutating func failed(_ now: MonotonicTime, _ effects: inout [Effect]) {
        failedFetches += 1
        fetch(now, &effects)
    }

    private mutating func catchUp(_ now: MonotonicTime, _ effects: inout [Effect]) {
        let waiting = buffer
        clearBuffer()
        for (index, event) in waiting.enumerated() {
            if event.header.sequence <= replica.position.sequence { continue }
            guard event.header.sequence == replica.position.sequence + 1 else {
                for later in waiting[index...] { keep(later) }
                return failed(now, &effects)
            }
            apply(event, &effects)
        }
        failedFetches = 0
        phase = .live
        show(.live, &effects)
    }
}

// MARK: - Parts

extension StreamReducer {
    private mutating func apply(_ event: StreamEvent, _ effects: inout [Effect]) {
        guard selection.contains(event.topic) else { return replica.skip(to: event.position) }
        replica.apply(event)
        effects.append(.update(.event(event)))
    }

    private mutating func dropStaleValues(_ now: MonotonicTime, _ effects: inout [Effect]) {
        guard let due = staleValuesUntil, now >= due else { return }
        staleValuesUntil = nil
        guard replica.hasStaleValues else { return }
        replica.dropStaleValues()
        effects.append(.update(.snapshot(replica)))
    }

    private mutating func show(_ state: ConnectionState, _ effects: inout [Effect]) {
        guard state != connection else { return }
        // A client that was never synchronised is still connecting.
        if state == .resyncing, replica.position.epoch == 0 { return }
        connection = state
        effects.append(.update(.connection(state)))
    }

    /// Buffers an event. Beyond the limit the newest events are dropped; the resulting gap is detected and fetched.
    private mutating func keep(_ event: StreamEvent) {
        guard buffer.count < limits.bufferedEvents, bufferBytes + event.payload.count <= limits.bufferedBytes else {
            ignored += 1
            return
        }
        buffer.append(event)
        bufferBytes += event.payload.count
    }

    private mutating func clearBuffer() {
        buffer = []
        bufferBytes = 0
    }
}

/// The kind of a message: the second byte of its header (see `protocols/bus.md`).
package enum MessageKind: UInt8, Sendable, CaseIterable {
    // The kinds of stream events; a PUBLISH has the kind of the event that it requests.
    /// Replaces the topic’s retained value and its deltas.
    case put = 1
    /// Changes the topic’s value; retained in order after its put.
    case delta = 2
    /// Removes the topic’s retained value.
    case delete = 3
    /// Reports something that happened; not retained.
    case event = 4
    /// Unsequenced telemetry on `live/…`.
    case live = 5
    /// Reports epoch and head on `bus/heartbeat`.
    case heartbeat = 6
    /// Reports epoch and head on `sync/<nonce>`; its arrival proves that the subscription is active.
    case sync = 7

    // The kinds between a service and the bus.
    case hello = 16
    /// The bus has registered the service.
    case welcome = 17
    /// The bus has assigned sequences to publishes.
    case acknowledge = 18
    /// The service has put all its retained values.
    case ready = 19
    /// The bus rejects a message; the code is its second frame.
    case reject = 20
    case goodbye = 21
    case ping = 22
    case pong = 23
    /// The state of another service.
    case status = 24

    // The kinds of requests.
    case request = 32
    case reply = 33
    /// The refusal of a request; the payload is a `WireFailure`.
    case failure = 34

    // The kinds of joins.
    /// Requests the stream from a position, or everything.
    case fetch = 40
    /// A part of the ring’s events.
    case replay = 41
    /// A part of the stream’s retained values.
    case snapshot = 42

    /// Whether a message of this kind gets a sequence in the stream.
    package var isSequenced: Bool { self == .put || self == .delta || self == .delete || self == .event }
}

/// The header of every message on every socket of the bus: 40 bytes, big-endian, always in the same layout.
///
///     0 version u8 | 1 kind u8 | 2 flags u16 | 4 generation u32 | 8 epoch u64
///     16 sequence u64 | 24 origin sequence u64 | 32 time u64 (ns)
///
/// The meaning of a field depends on the kind (`protocols/bus.md`); unused fields are zero.
package struct BusHeader: Sendable, Hashable {
    /// The length on the wire, in bytes.
    package static let length = 40
    /// The version that this code writes, and the only one that it reads.
    package static let currentVersion: UInt8 = 1

    package var kind: MessageKind
    package var flags: Flags
    /// The generation of the sending or receiving service; in ACKNOWLEDGE the number of acknowledged publishes.
    package var generation: UInt32
    /// The epoch of the bus.
    package var epoch: UInt64
    /// A sequence in the stream.
    package var sequence: UInt64
    /// The service’s count of its publishes in this epoch, from 1; for requests the bus’s ticket.
    package var originSequence: UInt64
    /// Nanoseconds: for events the wall clock (since 1970, UTC); for requests the deadline on CLOCK_MONOTONIC.
    package var time: UInt64

    /// The flags of this version; unknown bits are preserved.
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }
        /// In REPLAY and SNAPSHOT: another chunk follows.
        package static let more = Flags(rawValue: 1)
        /// In FETCH: requests a snapshot even if the ring covers the events.
        package static let forceSnapshot = Flags(rawValue: 2)
        /// In REQUEST: an earlier attempt may have been sent.
        package static let mayBeRepeat = Flags(rawValue: 4)
        /// In PING: no PONG is requested.
        package static let noAnswer = Flags(rawValue: 8)
    }

    package init(
        _ kind: MessageKind, flags: Flags = [], generation: UInt32 = 0, epoch: UInt64 = 0, sequence: UInt64 = 0,
        originSequence: UInt64 = 0, time: UInt64 = 0
    ) {
        self.kind = kind
        self.flags = flags
        self.generation = generation
        self.epoch = epoch
        self.sequence = sequence
        self.originSequence = originSequence
        self.time = time
    }

    /// Decodes a header; bytes after the first 40 are ignored, so that a later version may append fields.
    ///
    /// - Throws: `FrameError` if it is too short, of another version or of an unknown kind.
    package init(decoding bytes: UnsafeRawBufferPointer) throws(FrameError) {
        guard bytes.count >= Self.length else { throw .truncated(expected: Self.length, got: bytes.count) }
        guard bytes[0] == Self.currentVersion else { throw .unknownVersion(bytes[0]) }
        guard let kind = MessageKind(rawValue: bytes[1]) else { throw .unknownKind(bytes[1]) }
        func number<T: FixedWidthInteger>(at offset: Int, as: T.Type) -> T {
            T(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
        }
        self.init(
            kind,
            flags: Flags(rawValue: number(at: 2, as: UInt16.self)),
            generation: number(at: 4, as: UInt32.self),
            epoch: number(at: 8, as: UInt64.self),
            sequence: number(at: 16, as: UInt64.self),
            originSequence: number(at: 24, as: UInt64.self),
            time: number(at: 32, as: UInt64.self))
    }

    package init(decoding bytes: [UInt8]) throws(FrameError) {
        self = try bytes.withUnsafeBufferPointer { bytes throws(FrameError) in
            try BusHeader(decoding: UnsafeRawBufferPointer(bytes))
        }
    }

    /// Writes the 40 bytes into `bytes`, which must have room for them.
    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count >= Self.length, "a header needs 40 bytes")
        bytes[0] = Self.currentVersion
        bytes[1] = kind.rawValue
        bytes.storeBytes(of: flags.rawValue.bigEndian, toByteOffset: 2, as: UInt16.self)
        bytes.storeBytes(of: generation.bigEndian, toByteOffset: 4, as: UInt32.self)
        bytes.storeBytes(of: epoch.bigEndian, toByteOffset: 8, as: UInt64.self)
        bytes.storeBytes(of: sequence.bigEndian, toByteOffset: 16, as: UInt64.self)
        bytes.storeBytes(of: originSequence.bigEndian, toByteOffset: 24, as: UInt64.self)
        bytes.storeBytes(of: time.bigEndian, toByteOffset: 32, as: UInt64.self)
    }

    package var encoded: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.length) { buffer, count in
            encode(into: UnsafeMutableRawBufferPointer(buffer))
            count = Self.length
        }
    }
}

/// The reason why a frame can’t be decoded. The receiver drops and counts the message.
package enum FrameError: Error, Sendable, Hashable, CustomStringConvertible {
    case truncated(expected: Int, got: Int)
    case unknownVersion(UInt8)
    case unknownKind(UInt8)
    /// The kind is not allowed on this socket.
    case unexpectedKind(MessageKind)
    case frameCount(expected: Int, got: Int)
    /// A topic or name isn’t UTF-8 or is malformed.
    case badText

    package var description: String {
        switch self {
        case .truncated(let expected, let got): "\(got) bytes instead of \(expected)"
        case .unknownVersion(let version):
            "version \(version) isn’t supported; this program reads version \(BusHeader.currentVersion)"
        case .unknownKind(let kind): "unknown kind \(kind)"
        case .unexpectedKind(let kind): "kind \(kind) isn’t allowed on this socket"
        case .frameCount(let expected, let got): "\(got) frames instead of \(expected)"
        case .badText: "a malformed topic or name"
        }
    }
}

/// The reason for a failure, which services send and clients show.
public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
    /// A stable code for programs: lowerCamelCase, one of `FailureCode` or a later one.
    public var code: String
    /// A sentence for users: what happened, to which object, what to do next.
    public var message: String
    /// Whether the same command may succeed later without a change.
    public var retry: Bool
    /// A Protobuf message with details for the code, such as the candidates of `ambiguous`; usually empty.
    public var detail: [UInt8]

    /// Creates a failure with any code.
    public init(code: String, message: String, retry: Bool = false, detail: [UInt8] = []) {
        (self.code, self.message, self.retry, self.detail) = (code, message, retry, detail)
    }

    /// Creates a failure with a known code.
    public init(_ code: FailureCode, _ message: String) {
        self.init(code: code.rawValue, message: message, retry: code.retry)
    }

    /// The known code; nil if this version doesn’t know it.
    public var known: FailureCode? { FailureCode(rawValue: code) }

    /// The code and the sentence.
    public var description: String { "\(code): \(message)" }
}

/// The codes that this version knows. The set is open: a receiver must accept others.
public enum FailureCode: String, Sendable, CaseIterable {
    // The failures of requests.
    /// The service is not running or not ready.
    case unavailable
    /// A limit of pending work is reached.
    case busy
    /// The service or the bus ended while the request was in flight.
    case lostInFlight
    /// The deadline passed before the service executed the request.
    case expired
    /// The client’s time limit was reached: the outcome is unknown.
    case outcomeUnknown
    /// No fleet runs in this home.
    case noFleet
    /// A publish or request was sent before HELLO, or for another epoch.
    case helloRequired
    /// A newer generation of the same service is registered.
    case fenced
    /// The topic or record belongs to another service.
    case notOwner
    /// The message can’t be decoded.
    case malformed
    /// The service doesn’t know the command.
    case unknownCommand

    // The failures of arguments.
    /// An argument is outside its range.
    case invalidArgument
    /// Nothing has this name or ID.
    case notFound
    /// What an argument names is in a state, or of a kind, that doesn’t allow the command.
    case notApplicable
    /// Several objects match the text.
    case ambiguous
    /// The state has changed since `ifRevision`.
    case revisionMismatch
    /// The alert has already been answered.
    case alreadyAnswered
    /// The queue has nothing to play.
    case queueEmpty
    /// The first or last entry has no neighbour on that side.
    case atEdge
    /// No episode is loaded.
    case nothingLoaded
    /// A limit is reached.
    case limitReached

    // The failures of storage.
    /// The change took effect but couldn’t be written to disk.
    case notSaved
    /// The disk is full.
    case diskFull
    /// The database can’t be used.
    case storageFailed
    /// The database was written by a newer version.
    case newerDatabase

    // The failures of playback.
    /// The audio couldn’t be opened or read.
    case streamFailed
    /// A local file is missing.
    case fileMissing
    /// The data isn’t audio that can be decoded.
    case decoderFailed
    /// The audio ended before its known length.
    case endedEarly
    /// There is no sound device.
    case noSoundDevice
    /// The episode has no audio.
    case episodeUnavailable
    /// The stored session is inconsistent.
    case sessionCorrupt

    // The failures of downloads.
    /// A server can’t be reached: no network, an unknown host, or no response.
    case unreachable
    /// The free space isn’t enough for a file.
    case insufficientStorage
    /// The fetched file doesn’t have the announced size or kind.
    case verificationFailed

    // The failures of feeds.
    /// A URL has an unsupported scheme, or isn’t a URL.
    case badURL
    /// The server couldn’t be reached or answered with an error.
    case fetchFailed
    /// The fetched document isn’t a podcast feed.
    case notAFeed
    /// A feed or message exceeds the size limit.
    case tooLarge

    // The failures of this machine.
    /// A configuration can’t be used.
    case badConfiguration
    /// Another instance holds the lock.
    case alreadyRunning
    /// The work crashed its service repeatedly and is set aside until it is requested again.
    case quarantined
    /// An error of the program itself.
    case internalError

    /// Whether the same command may succeed later without a change.
    public var retry: Bool {
        switch self {
        case .unavailable, .busy, .lostInFlight, .expired, .outcomeUnknown, .noFleet, .notSaved, .diskFull,
            .storageFailed, .streamFailed, .endedEarly, .fetchFailed, .helloRequired, .insufficientStorage,
            .unreachable:
            true
        default: false
        }
    }
}

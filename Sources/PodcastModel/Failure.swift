/// The reason why something failed, as every service replies it and every client shows it.
public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
    /// A stable word that programs compare: lowerCamelCase, one of `FailureCode` or a later one.
    public var code: String
    /// A sentence for people: what happened, to which thing, what to do next.
    public var message: String
    /// Whether the same command may succeed later without anything being changed.
    public var retry: Bool
    /// The code’s own message in protobuf, such as the candidates of `ambiguous`; mostly empty.
    public var detail: [UInt8]

    /// A failure with a code of its own.
    public init(code: String, message: String, retry: Bool = false, detail: [UInt8] = []) {
        (self.code, self.message, self.retry, self.detail) = (code, message, retry, detail)
    }

    /// A failure with a known code.
    public init(_ code: FailureCode, _ message: String) {
        self.init(code: code.rawValue, message: message, retry: code.retry)
    }

    /// The known code, or nil for one that this version has not heard of.
    public var known: FailureCode? { FailureCode(rawValue: code) }

    /// The code and the sentence.
    public var description: String { "\(code): \(message)" }
}

/// The codes that this version knows. The set is open: a receiver must accept others.
public enum FailureCode: String, Sendable, CaseIterable {
    // The bus and the request’s way.
    /// The service is not running or not ready.
    case unavailable
    /// A window is full.
    case busy
    /// The service or the bus ended while it held the request.
    case lostInFlight
    /// The deadline passed before the service began: nothing was done.
    case expired
    /// The client ran out of time: the outcome is not known.
    case outcomeUnknown
    /// No fleet runs in this home.
    case noFleet
    /// A publish or request before HELLO, or for another epoch.
    case helloRequired
    /// A newer generation of the same service has taken over.
    case fenced
    /// Something that only another service may write.
    case notOwner
    /// A message that cannot be decoded.
    case malformed
    /// A command that the service does not know.
    case unknownCommand

    // What was asked for.
    /// An argument outside its range.
    case invalidArgument
    /// Nothing has that name or ID.
    case notFound
    /// Several things match the text.
    case ambiguous
    /// The state was changed by somebody else since `ifRevision`.
    case revisionMismatch
    /// An alert that another answer has reached first.
    case alreadyAnswered
    /// The queue holds nothing to play.
    case queueEmpty
    /// The first or last entry has no neighbour on that side.
    case atEdge
    /// No episode is loaded.
    case nothingLoaded
    /// A limit that refuses.
    case limitReached

    // Storage.
    /// It took effect but could not be written to disk.
    case notSaved
    /// The disk is full.
    case diskFull
    /// The database cannot be used.
    case storageFailed
    /// The database was written by a newer version.
    case newerDatabase

    // Playback.
    /// The audio could not be opened or read.
    case streamFailed
    /// A local file is not there.
    case fileMissing
    /// The data is no audio that can be decoded.
    case decoderFailed
    /// The audio ended before its known end.
    case endedEarly
    /// There is no sound device.
    case noSoundDevice
    /// The episode has no audio.
    case episodeUnavailable
    /// The stored session is inconsistent.
    case sessionCorrupt

    // Downloads.
    /// A server that cannot be reached: no network, no such host, no answer.
    case unreachable
    /// Not enough free space for a file.
    case insufficientStorage
    /// The fetched file doesn’t have the announced size or kind.
    case verificationFailed

    // Feeds.
    /// A URL with a scheme that is not supported, or no URL at all.
    case badURL
    /// The server could not be reached or answered with an error.
    case fetchFailed
    /// The fetched document isn’t a podcast feed.
    case notAFeed
    /// A feed or message beyond the size limit.
    case tooLarge

    // This machine.
    /// A configuration that cannot be used.
    case badConfiguration
    /// Another instance holds the lock.
    case alreadyRunning
    /// Work that crashed its service repeatedly and was set aside until somebody asks for it again.
    case quarantined
    /// An error of the program itself.
    case internalError

    /// Whether the same command may succeed later without anything being changed.
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

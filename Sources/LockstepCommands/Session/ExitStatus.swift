import PodcastModel

/// The exit status of a command, as in sysexits(3).
enum ExitStatus: Int32, Sendable {
    case success = 0
    /// The command line is wrong in itself: an argument is missing, empty, malformed or out of its fixed range.
    case usage = 64
    /// An argument doesn’t fit the data or the state: what it names doesn’t exist, isn’t unique, or doesn’t allow it.
    case data = 65
    /// A service or file that the command needs isn’t available.
    case unavailable = 69
    /// An error of the program itself.
    case software = 70
    /// A retry may help.
    case tryAgain = 75
    case configuration = 78

    /// The status for a failure; for an unknown code it depends on whether a retry may help.
    init(_ failure: Failure) {
        switch failure.known {
        case .invalidArgument, .badURL, .unknownCommand: self = .usage
        case .notFound, .notApplicable, .ambiguous, .malformed, .notAFeed, .tooLarge, .decoderFailed, .sessionCorrupt,
            .verificationFailed, .fileMissing, .limitReached, .alreadyAnswered, .episodeUnavailable:
            self = .data
        case .noFleet, .unavailable, .queueEmpty, .atEdge, .nothingLoaded, .noSoundDevice: self = .unavailable
        case .badConfiguration, .newerDatabase: self = .configuration
        case .internalError, .quarantined: self = .software
        // These are final if a retry can’t help: a server’s refusal, and a position beyond the end.
        case .fetchFailed, .streamFailed, .endedEarly: self = failure.retry ? .tryAgain : .unavailable
        case .busy, .lostInFlight, .expired, .outcomeUnknown, .helloRequired, .fenced, .notOwner, .revisionMismatch,
            .notSaved, .diskFull, .storageFailed, .insufficientStorage, .unreachable, .alreadyRunning:
            self = .tryAgain
        case nil: self = failure.retry ? .tryAgain : .unavailable
        }
    }
}

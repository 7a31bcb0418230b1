import FoundationEssentials
public import PodcastModel

extension WireFailure {
    /// The failure as the wire carries it.
    public init(_ failure: Failure) {
        self.init()
        code = failure.code
        message = failure.message
        retry = failure.retry
        detail = Data(failure.detail)
    }

    /// The failure as the wire brought it; one without a code is an `internalError`.
    public var failure: Failure {
        Failure(
            code: code.isEmpty ? FailureCode.internalError.rawValue : code, message: message, retry: retry,
            detail: [UInt8](detail))
    }
}

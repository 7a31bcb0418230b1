import FoundationEssentials
package import PodcastModel

extension Failure {
    /// The failure of a service process whose name a newer generation has registered.
    package static func fenced(by generation: UInt32) -> Failure {
        var superseded = WireSuperseded()
        superseded.generation = generation
        return Failure(
            code: FailureCode.fenced.rawValue, message: "A newer process of the same service has taken over.",
            detail: superseded.wireBytes)
    }

    /// The newest generation of the service that the sender of `fenced` knows; 0 if it gives none.
    package var fencingGeneration: UInt32 {
        guard known == .fenced else { return 0 }
        return (try? WireSuperseded(wireBytes: detail))?.generation ?? 0
    }
}

extension WireFailure {
    package init(_ failure: Failure) {
        self.init()
        code = failure.code
        message = failure.message
        retry = failure.retry
        detail = Data(failure.detail)
    }

    /// The failure; without a code it is an `internalError`.
    package var failure: Failure {
        Failure(
            code: code.isEmpty ? FailureCode.internalError.rawValue : code, message: message, retry: retry,
            detail: [UInt8](detail))
    }
}

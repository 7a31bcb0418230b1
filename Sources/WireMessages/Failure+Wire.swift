import FoundationEssentials
package import PodcastModel
import SwiftProtobuf

extension Failure {
    /// More than one thing has the name that a user gave.
    ///
    /// - Parameter candidates: the things that have it; the detail holds the first 20.
    package init(ambiguous message: String, _ candidates: some Sequence<(id: String, title: String)>) {
        let detail = WireCandidates.with {
            $0.candidates = candidates.prefix(20).map { candidate in
                .with { ($0.id, $0.title) = (candidate.id, candidate.title) }
            }
        }
        self.init(
            code: FailureCode.ambiguous.rawValue, message: message + " Say which by its ID:", detail: detail.wireBytes)
    }

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

package import PodcastModel
import SwiftProtobuf
import WireMessages

extension Failure {
    /// The failure of a text that could mean several things, of which it lists 20.
    package static func ambiguous(_ message: String, _ candidates: [(id: String, title: String)]) -> Failure {
        let detail = WireCandidates.with {
            $0.candidates = candidates.prefix(20).map { candidate in
                .with { ($0.id, $0.title) = (candidate.id, candidate.title) }
            }
        }
        return Failure(
            code: FailureCode.ambiguous.rawValue, message: message + " Say which by its ID:", detail: detail.wireBytes)
    }
}

import PodcastModel
import SwiftProtobuf
import WireMessages

/// Work on many feeds that goes on without the client that requested it, and after a restart of the service.
struct FeedsJob: Sendable {
    /// The purpose of a job, with its word on the stream.
    enum Kind: String, Sendable {
        case refresh, subscribe
    }

    /// A feed of the job.
    struct Line: Sendable {
        /// The address that the client named; empty for a podcast’s own.
        var url = ""
        var podcast: PodcastID?
        /// The outcome; `unknown` until there is one.
        var kind = WireFeedResult.Kind.unknown
        var failure: Failure?
        var newEpisodes: UInt32 = 0
        var warnings: [String] = []
    }

    /// The maximum number of failures on the stream.
    static let publishedFailures = 20
    /// The maximum number of warnings that are kept of a feed.
    static let keptWarnings = 4

    let id: JobID
    let kind: Kind
    let started: Timestamp
    let origin: String
    /// Whether a feed whose first fetch fails is removed again.
    var dropsFailing = false
    var lines: [Line]
    private(set) var done = 0
    private(set) var failed = 0
    /// Whether its record is stored, so that it is on the stream.
    var isStored = false
    var ended: Timestamp?
    /// Whether the published value is out of date.
    var isChanged = false
    /// The times of the last publication, and of its removal after the end.
    var publishedAt: MonotonicTime?
    var removedAt: MonotonicTime?

    init(_ kind: Kind, id: JobID, origin: String, at started: Timestamp, _ lines: [Line]) {
        (self.kind, self.id, self.origin, self.started, self.lines) = (kind, id, origin, started, lines)
        for line in lines where line.kind != .unknown { count(line.kind) }
    }

    var isDone: Bool { done == lines.count }

    private mutating func count(_ kind: WireFeedResult.Kind) {
        done += 1
        if kind == .failed { failed += 1 }
    }

    /// Sets the outcome of a feed; only the first one counts.
    mutating func finish(_ line: Int, _ result: WireFeedResult) {
        guard lines.indices.contains(line), lines[line].kind == .unknown, result.kind != .unknown else { return }
        lines[line].kind = result.kind
        lines[line].failure = result.hasFailure ? result.failure.failure : nil
        lines[line].newEpisodes = result.newEpisodes
        lines[line].warnings = Array(result.warnings.prefix(Self.keptWarnings))
        if let id = PodcastID(result.podcast.id) { lines[line].podcast = id }
        count(result.kind)
        isChanged = true
    }
}

extension FeedsJob {
    /// Restores a running job; nil for an unreadable ID or a job of a later version.
    init?(_ id: String, _ record: WireJobRecord) {
        guard let id = JobID(id), let kind = Kind(rawValue: record.what) else { return nil }
        let lines = record.lines.map { line in
            Line(
                url: line.url, podcast: PodcastID(line.podcast), kind: line.kind,
                failure: line.hasFailure ? line.failure.failure : nil)
        }
        self.init(kind, id: id, origin: record.origin, at: Timestamp(milliseconds: record.started), lines)
        dropsFailing = record.dropFailing
        isStored = true
    }

    /// The record, which isn’t updated while the job runs: after a restart, the podcasts show what was done.
    var record: WireJobRecord {
        .with {
            ($0.what, $0.started, $0.origin, $0.dropFailing) = (
                kind.rawValue, started.milliseconds, origin, dropsFailing
            )
            $0.lines = lines.map { line in
                .with {
                    ($0.url, $0.podcast, $0.kind) = (line.url, line.podcast?.text ?? "", line.kind)
                    if let failure = line.failure { $0.failure = WireFailure(failure) }
                }
            }
        }
    }

    /// The published value.
    ///
    /// - Parameter name: the name of a podcast without an address in its line.
    func wire(name: (PodcastID) -> String) -> WireJob {
        .with {
            ($0.id, $0.what, $0.origin) = (id.text, kind.rawValue, origin)
            $0.total = UInt32(clamping: lines.count)
            ($0.done, $0.failed) = (UInt32(clamping: done), UInt32(clamping: failed))
            ($0.started, $0.ended) = (started.milliseconds, ended?.milliseconds ?? 0)
            guard failed > 0 else { return }
            $0.failures = lines.lazy.filter { $0.kind == .failed }.prefix(Self.publishedFailures).map { line in
                .with {
                    $0.name = line.url.isEmpty ? line.podcast.map(name) ?? "" : line.url
                    $0.name = String($0.name.prefix(500))
                    if let failure = line.failure { $0.failure = WireFailure(failure) }
                }
            }
        }
    }
}

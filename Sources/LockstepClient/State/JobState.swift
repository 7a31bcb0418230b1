public import PodcastModel
package import WireMessages

/// Work on many things that goes on without the client that requested it.
public struct JobState: Sendable, Hashable {
    package let wire: WireJob
    /// The job’s ID.
    public let id: JobID

    /// Reads a job; nil if its ID isn’t valid.
    package init?(_ wire: WireJob) {
        guard let id = JobID(wire.id) else { return nil }
        (self.id, self.wire) = (id, wire)
    }

    /// The stable word of its purpose, such as `refresh` or `subscribe`.
    public var what: String { DisplayText.sanitised(wire.what) }
    /// The number of things to do.
    public var total: Int { Int(wire.total) }
    /// The number of those that are done, also of those that failed.
    public var done: Int { Int(wire.done) }
    /// The number of those that failed.
    public var failed: Int { Int(wire.failed) }
    /// The time of its start.
    public var started: Timestamp { Timestamp(milliseconds: wire.started) }
    /// The time of its end; nil while it is running.
    public var ended: Timestamp? { wire.ended == 0 ? nil : Timestamp(milliseconds: wire.ended) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}

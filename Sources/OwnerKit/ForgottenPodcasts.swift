import PodcastModel
import WireMessages

/// Detects forgotten podcasts: the library is queried, one at a time, for podcasts that the stream no longer shows.
/// The bus drops all values of a service that stays down, so the deletion of a value alone proves nothing.
struct ForgottenPodcasts: Sendable {
    static let prefix = Topic.podcast("").text
    private static let queryBackoff = Backoff.exponential(first: .seconds(1), longest: .seconds(60))

    private var unverified: [PodcastID] = []
    private var question: PodcastID?
    private var failures = 0
    /// The time at which the library is queried again after a failure.
    private(set) var retryAt: MonotonicTime?
    /// The podcasts that were reported as forgotten, and haven’t reappeared.
    private var reported: Set<PodcastID> = []

    static func podcast(_ topic: Topic) -> PodcastID? {
        topic.text.hasPrefix(prefix) ? PodcastID(String(topic.text.dropFirst(prefix.count))) : nil
    }

    /// Enqueues podcasts, which may be forgotten, for verification.
    mutating func verify(_ podcasts: Set<PodcastID>) {
        guard !podcasts.isEmpty else { return }
        unverified += podcasts.subtracting(unverified).sorted()
    }

    /// Records that the stream shows a podcast, so it exists.
    mutating func exists(_ podcast: PodcastID) {
        reported.remove(podcast)
        unverified.removeAll { $0 == podcast }
    }

    /// Schedules another report of the forgotten podcasts that the machine still has data of, because a change was
    /// rolled back.
    mutating func reportAgain(_ known: @autoclosure () -> Set<PodcastID>, now: MonotonicTime) {
        guard !reported.isEmpty else { return }
        let left = reported.intersection(known())
        guard !left.isEmpty else { return }
        verify(left)
        pause(now)
    }

    mutating func libraryReturned() { retryAt = nil }

    /// The next podcast to verify; nil if there is none now.
    mutating func next(now: MonotonicTime) -> PodcastID? {
        if let retryAt, now < retryAt { return nil }
        retryAt = nil
        guard question == nil, let podcast = unverified.first else { return nil }
        unverified.removeFirst()
        question = podcast
        return podcast
    }

    /// - Parameter isShown: whether the stream shows the podcast.
    /// - Returns: whether the podcast has been forgotten.
    mutating func answered(
        _ podcast: PodcastID, _ result: Result<WirePersistenceReply, Failure>, isShown: Bool, now: MonotonicTime
    ) -> Bool {
        guard question == podcast else { return false }
        question = nil
        let isGone: Bool
        switch result {
        case .success(let reply):
            // The library finds podcasts by a part of their titles, too.
            isGone = !reply.podcasts.podcasts.contains { $0.id == podcast.text }
        case .failure(let failure):
            isGone = [.notFound, .ambiguous].contains(failure.known)
            if !isGone {
                // The podcast is verified again after the others.
                if !isShown { verify([podcast]) }
                pause(now)
                return false
            }
        }
        failures = 0
        guard isGone, !isShown else { return false }
        reported.insert(podcast)
        return true
    }

    private mutating func pause(_ now: MonotonicTime) {
        failures += 1
        retryAt = now.advanced(by: Self.queryBackoff.wait(after: failures))
    }
}

import PodcastModel
import WireMessages

/// Finds out which podcasts have been forgotten: of those that the stream does not show any more, the library is asked one
/// at a time. The bus drops all values of a service that stays away, so their end alone says nothing.
struct ForgottenPodcasts: Sendable {
    static let prefix = Topic.podcast("").text
    private static let retry = Backoff.exponential(first: .seconds(1), longest: .seconds(60))

    private var unverified: [PodcastID] = []
    private var question: PodcastID?
    private var failures = 0
    /// When the library is asked again that could not answer.
    private(set) var retryAt: MonotonicTime?
    /// The podcasts that were reported as forgotten, and have not come back.
    private var reported: Set<PodcastID> = []

    static func podcast(_ topic: Topic) -> PodcastID? {
        topic.text.hasPrefix(prefix) ? PodcastID(String(topic.text.dropFirst(prefix.count))) : nil
    }

    /// Verifies podcasts that may be gone.
    mutating func verify(_ podcasts: Set<PodcastID>) {
        guard !podcasts.isEmpty else { return }
        unverified += podcasts.subtracting(unverified).sorted()
    }

    /// The stream shows a podcast: it exists, or exists again.
    mutating func exists(_ podcast: PodcastID) {
        reported.remove(podcast)
        unverified.removeAll { $0 == podcast }
    }

    /// Reports the forgotten podcasts again of which the machine still keeps something, as a change was rolled back; not at
    /// once.
    mutating func reportAgain(_ known: @autoclosure () -> Set<PodcastID>, now: MonotonicTime) {
        guard !reported.isEmpty else { return }
        let left = reported.intersection(known())
        guard !left.isEmpty else { return }
        verify(left)
        pause(now)
    }

    mutating func libraryReturned() { retryAt = nil }

    /// The next podcast to ask about; nil while nothing is to be asked.
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
                // Another one is asked about next time.
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
        retryAt = now.advanced(by: Self.retry.wait(after: failures))
    }
}

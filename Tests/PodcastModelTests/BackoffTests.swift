import PodcastModel
import Testing

@Suite struct BackoffTests {
    @Test func `exponential waits double up to the longest wait`() {
        let backoff = Backoff.exponential(first: .milliseconds(50), longest: .seconds(1))
        let waits = (1...7).map { backoff.wait(after: $0) }
        #expect(waits == [50, 100, 200, 400, 800, 1_000, 1_000].map { .milliseconds($0) })
        #expect(backoff.wait(after: .max) == .seconds(1))
        #expect(backoff.allowsRetry(after: .max))
    }

    @Test(arguments: [(0.0, 800), (0.5, 1_000), (0.75, 1_100)])
    func `jitter makes a wait longer or shorter`(random: Double, milliseconds: Int) {
        let backoff = Backoff.exponential(first: .seconds(1), longest: .seconds(10), jitter: 0.2)
        let wait = backoff.wait(after: 1, random: random) / .milliseconds(1)
        #expect(abs(wait - Double(milliseconds)) < 1e-6)
    }

    @Test(arguments: [(0.0, 1_600), (0.5, 2_000), (0.75, 2_200), (0.99999999, 2_400)])
    func `jitter also varies the longest waits, and none exceeds the limit`(random: Double, milliseconds: Int) {
        let backoff = Backoff.exponential(first: .seconds(1), longest: .milliseconds(2_400), jitter: 0.2)
        let wait = backoff.wait(after: 9, random: random) / .milliseconds(1)
        #expect(abs(wait - Double(milliseconds)) < 1e-4 && wait <= 2_400)
    }

    @Test func `retries end after the last step`() {
        let backoff = Backoff.steps([.seconds(5), .seconds(15), .seconds(60)], repeatsLast: false)
        #expect((1...3).map { backoff.wait(after: $0) } == [.seconds(5), .seconds(15), .seconds(60)])
        #expect(backoff.retryLimit == 3)
        #expect((0...4).map { backoff.allowsRetry(after: $0) } == [true, true, true, true, false])
    }

    @Test func `the last step repeats if that is configured`() {
        let backoff = Backoff.steps([.seconds(1), .seconds(3)], repeatsLast: true)
        #expect((1...4).map { backoff.wait(after: $0) } == [.seconds(1), .seconds(3), .seconds(3), .seconds(3)])
        #expect(backoff.allowsRetry(after: 1_000))
    }

    @Test func `a backoff without steps allows no retry`() {
        #expect(!Backoff.steps([], repeatsLast: true).allowsRetry(after: 1))
        #expect(Backoff.steps([], repeatsLast: false).wait(after: 1) == .zero)
    }

    @Test func `a constant wait repeats up to the retry limit`() {
        #expect(Backoff.constant(.seconds(5)).wait() == .seconds(5))
        #expect(Backoff.constant(.seconds(5)).wait(after: 99) == .seconds(5))
        #expect(Backoff.constant(.zero, retries: 4).allowsRetry(after: 4))
        #expect(!Backoff.constant(.zero, retries: 4).allowsRetry(after: 5))
    }
}

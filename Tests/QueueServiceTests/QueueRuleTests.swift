import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests the rules that enqueue new episodes automatically.
struct QueueRuleTests {
    private static let podcast = PodcastID.derived(from: "http://a.b/feed").text
    private static let day: Int64 = 24 * 3_600 * 1_000

    @Test(arguments: [("top", [8, 9, 1, 2]), ("bottom", [1, 2, 8, 9]), ("next", [1, 8, 9, 2])])
    func `new episodes are enqueued at the rule’s position`(place: String, expected: [Int]) throws {
        let queue = QueueRig()
        publish(queue, [3, 4])
        queue.add(1, 2)
        queue.play(1)
        set(queue, "autoEnqueue", place)
        #expect(queue.numbers == [1, 2])
        publish(queue, [8, 9], seen: 10)
        #expect(queue.numbers == expected)
        let entry = try #require(queue.machine.main.queue.entry(episode: QueueRig.episode(8)))
        #expect(entry.wire.reason.contains("rule") && entry.wire.reason.contains("Show"))
        let newest = try #require(queue.machine.main.history.newest(1).first)
        #expect(newest.origin == "rule")
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2])
        publish(queue, [8, 9], seen: 10)
        #expect(queue.numbers == [1, 2])
    }

    @Test func `episodes that arrived while the service was down are enqueued when it starts`() throws {
        let queue = QueueRig()
        publish(queue, [3, 4])
        set(queue, "autoEnqueue", "bottom")
        publish(queue, [5], seen: 10, announced: false)
        queue.restart()
        #expect(queue.numbers.isEmpty)
        observePodcast(queue, count: 3)
        #expect(queue.numbers == [5])
        queue.restart()
        observePodcast(queue, count: 3)
        #expect(queue.numbers == [5])
    }

    @Test func `the back catalogue of a new subscription isn’t enqueued`() throws {
        let queue = QueueRig()
        set(queue, "autoEnqueue", "bottom", podcast: "")
        publish(queue, Array(1...20))
        #expect(queue.numbers.isEmpty)
        publish(queue, [21], seen: 10)
        #expect(queue.numbers == [21])
        // An old episode that is published for the first time isn’t new.
        publish(queue, [22], seen: 20, published: -30 * Self.day)
        #expect(queue.numbers == [21])
    }

    @Test func `episodes from before a new subscription aren’t enqueued`() throws {
        let queue = QueueRig()
        set(queue, "autoEnqueue", "bottom", podcast: "")
        publish(queue, [1, 2])
        observePodcast(queue, count: 2, subscribed: false)
        for number in 3...9 { detail(queue, number, seen: 10) }
        queue.restart()
        observePodcast(queue, count: 2, subscribed: false)
        observePodcast(queue, count: 9)
        #expect(queue.numbers.isEmpty)
        publish(queue, [10], seen: 20)
        #expect(queue.numbers == [10])
    }

    @Test(arguments: [true, false])
    func `a check that ends after an unsubscription leaves no mark`(isSubscribedAgain: Bool) {
        let queue = QueueRig()
        set(queue, "autoEnqueue", "bottom", podcast: "")
        queue.libraryAnswers = false
        publish(queue, [1, 2])
        observePodcast(queue, count: 2, subscribed: false)
        for number in 3...9 { detail(queue, number, seen: 10) }
        queue.releaseCalls(first: 1)
        #expect(queue.records["rule"]?.isEmpty != false)
        guard isSubscribedAgain else { return #expect(queue.owner.heldCalls.isEmpty) }
        observePodcast(queue, count: 9)
        while !queue.owner.heldCalls.isEmpty { queue.releaseCalls(first: 1) }
        #expect(queue.numbers.isEmpty)
        queue.libraryAnswers = true
        publish(queue, [10], seen: 20)
        #expect(queue.numbers == [10])
    }

    @Test func `a podcast whose new episodes couldn’t be saved isn’t checked again after it is unsubscribed`() {
        let queue = QueueRig()
        set(queue, "autoEnqueue", "bottom", podcast: "")
        queue.holdsCommits = true
        publish(queue, [1, 2])
        observePodcast(queue, count: 2, subscribed: false)
        queue.refuse()
        queue.holdsCommits = false
        queue.fireTimers()
        #expect(queue.records["rule"]?.isEmpty != false)
    }

    @Test func `the newest episode is enqueued even if its feed lists it late`() throws {
        let queue = QueueRig()
        publish(queue, [1, 2], published: -40 * Self.day)
        set(queue, "autoEnqueue", "bottom")
        publish(queue, [3], seen: 10, published: -30 * Self.day)
        #expect(queue.numbers == [3])
        publish(queue, [4], seen: 20, published: -35 * Self.day)
        #expect(queue.numbers == [3])
        // If a feed lists the episodes of many years at once, only the last one is new.
        publish(queue, Array(10...20), seen: 30, published: -20 * Self.day)
        #expect(queue.numbers == [3, 20])
    }

    @Test func `played and queued episodes aren’t enqueued`() throws {
        let queue = QueueRig()
        publish(queue, [3])
        set(queue, "autoEnqueue", "bottom")
        detail(queue, 4, seen: 10)
        queue.details[QueueRig.episode(4)]?.state.played = true
        detail(queue, 5, seen: 10)
        queue.add(5)
        publish(queue, [6], seen: 10)
        #expect(queue.numbers == [5, 6])
    }

    @Test(arguments: [true, false])
    func `a queue that a rule names can’t be deleted before the rule`(isForgotten: Bool) throws {
        let queue = QueueRig()
        publish(queue, [3])
        #expect(code(set(queue, "autoEnqueueQueue", "news")) == .notFound)
        queue.send {
            $0.queue = "news"
            $0.create = WireCreateQueue()
        }
        set(queue, "autoEnqueueQueue", "news")
        set(queue, "autoEnqueue", "top")
        publish(queue, [7], seen: 10)
        #expect(queue.numbers.isEmpty)
        #expect(queue.machine.queues.named("news").queue.entries.map(\.episode) == [QueueRig.episode(7)])
        queue.send {
            $0.queue = "news"
            $0.clear = WireClearQueue()
        }
        let delete = { (queue: QueueRig) in
            queue.send {
                $0.queue = "news"
                $0.delete = WireDeleteQueue()
            }
        }
        #expect(code(delete(queue)) == .notApplicable)
        if isForgotten {
            queue.handle(.podcastForgotten(try #require(PodcastID(Self.podcast))))
            #expect(queue.published.contains(Publication(.delete, .settings(.queue, podcast: Self.podcast))))
        } else {
            // The feeds service is down: its podcasts aren’t published, but none is forgotten.
            queue.observe(.delete, .podcast(Self.podcast), originSequence: 0)
            #expect(code(delete(queue)) == .notApplicable)
            set(queue, "autoEnqueueQueue", "")
        }
        #expect(code(delete(queue)) == nil)
    }

    @Test func `a rule that is turned on ignores existing episodes`() throws {
        let queue = QueueRig()
        publish(queue, [3])
        set(queue, "autoEnqueue", "bottom")
        set(queue, "autoEnqueue", "off")
        publish(queue, [4], seen: 10)
        set(queue, "autoEnqueue", "bottom")
        #expect(queue.numbers.isEmpty)
        publish(queue, [5], seen: 20)
        #expect(queue.numbers == [5])
    }

    /// Returns a queue with a limit of two that holds one entry, and a podcast whose new episodes are added at the end.
    private func narrow() -> QueueRig {
        let queue = QueueRig()
        publish(queue, [3])
        queue.add(1)
        queue.send { $0.setModes.limit = 2 }
        set(queue, "autoEnqueue", "bottom")
        return queue
    }

    @Test func `episodes that don’t fit are reported in one alert per podcast`() throws {
        let queue = narrow()
        publish(queue, [4, 5], seen: 10)
        #expect(queue.numbers == [1, 4])
        let first = try #require(queue.alerts.first)
        #expect(first.message.contains("Episode 5") && first.message.contains("Show"))
        #expect(first.title == "Up Next is full" && first.podcast == Self.podcast && first.owner == "queue")
        queue.now.wall = Timestamp(milliseconds: queue.now.wall.milliseconds + 60_000)
        publish(queue, [6, 7], seen: 20)
        let second = try #require(queue.alerts.first)
        #expect(queue.alerts.count == 1 && second.id != first.id && second.message.contains("2 new episodes"))
        queue.restart()
        #expect(queue.alerts == [second])
        let answer = { (queue: QueueRig, action: String) in
            queue.send {
                $0.answerAlert.alert = second.id
                $0.answerAlert.action = action
            }
        }
        #expect(code(answer(queue, "retry")) == .invalidArgument)
        #expect(try answer(queue, "dismiss")?.get().alertAnswered.action == "dismiss")
        #expect(queue.alerts.isEmpty)
        #expect(try answer(queue, "dismiss")?.get().alertAnswered.action == "dismiss")
        #expect(code(answer(queue, "retry")) == .alreadyAnswered)
        queue.restart()
        #expect(queue.alerts.isEmpty)
        #expect(code(answer(queue, "retry")) == .alreadyAnswered)
    }

    @Test(arguments: [true, false]) func `an alert ends with its rule and with its podcast`(ruleGoes: Bool) throws {
        let queue = narrow()
        publish(queue, [4, 5], seen: 10)
        #expect(queue.alerts.count == 1)
        if ruleGoes {
            set(queue, "autoEnqueue", "off")
        } else {
            queue.handle(.podcastForgotten(try #require(PodcastID(Self.podcast))))
        }
        #expect(queue.alerts.isEmpty)
    }

    @Test func `a podcast whose new episodes couldn’t be saved is checked again`() throws {
        let queue = QueueRig()
        publish(queue, [3])
        set(queue, "autoEnqueue", "bottom")
        queue.holdsCommits = true
        publish(queue, [4], seen: 10)
        queue.refuse()
        #expect(queue.numbers.isEmpty)
        queue.holdsCommits = false
        queue.fireTimers()
        #expect(queue.numbers == [4])
    }

    @Test(arguments: [("speed", "2"), ("autoEnqueue", "sideways"), ("nonsense", "1"), ("autoEnqueueQueue", "no name")])
    func `invalid settings are refused`(key: String, value: String) throws {
        let queue = QueueRig()
        #expect(code(set(queue, key, value)) == .invalidArgument)
    }

    @Test func `settings are published and survive a restart`() throws {
        let queue = QueueRig()
        set(queue, "autoEnqueue", "top")
        queue.restart()
        let topic = Topic.settings(.queue, podcast: Self.podcast)
        let put = try #require(queue.published.last { $0.topic == topic })
        #expect(try WireSettingsState(wireBytes: put.payload).settings.map(\.value) == ["top"])
        set(queue, "autoEnqueue", "")
        #expect(queue.published.last == Publication(.delete, topic))
    }

    // MARK: -

    @discardableResult
    private func set(
        _ queue: QueueRig, _ key: String, _ value: String, podcast: String = Self.podcast
    ) -> Result<WireQueueReply, Failure>? {
        queue.send {
            $0.setSetting.podcast = podcast
            $0.setSetting.key = key
            $0.setSetting.value = value
        }
    }

    private func detail(_ queue: QueueRig, _ number: Int, seen: Int64, published: Int64 = 0) {
        queue.details[QueueRig.episode(number)] = .with {
            $0.id = QueueRig.episode(number)
            $0.podcastID = Self.podcast
            $0.podcastTitle = "Show"
            $0.title = "Episode \(number)"
            $0.enclosureURL = "http://a.b/\(number).mp3"
            $0.firstSeen = queue.now.wall.milliseconds + seen * 1_000
            $0.published = queue.now.wall.milliseconds + Int64(number) + published
        }
    }

    /// Adds new episodes of the podcast to the library and, if `announced`, publishes them.
    private func publish(
        _ queue: QueueRig, _ numbers: [Int], seen: Int64 = 0, published: Int64 = 0, announced: Bool = true
    ) {
        for number in numbers { detail(queue, number, seen: seen, published: published) }
        guard announced else { return }
        let news = WireEpisodesChanged.with {
            $0.podcast = Self.podcast
            $0.added = numbers.map(QueueRig.episode)
        }
        queue.observe(.event, .episodes(of: Self.podcast), news.wireBytes)
        observePodcast(queue, count: queue.details.count)
    }

    private func observePodcast(_ queue: QueueRig, count: Int, subscribed: Bool = true) {
        let podcast = WirePodcast.with {
            $0.id = Self.podcast
            $0.episodeCount = UInt32(count)
            $0.subscribed = subscribed
        }
        queue.observe(.put, .podcast(Self.podcast), podcast.wireBytes)
    }

    private func code(_ result: Result<WireQueueReply, Failure>?) -> FailureCode? {
        guard case .failure(let failure) = result else { return nil }
        return failure.known
    }
}

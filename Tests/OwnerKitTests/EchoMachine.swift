import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// An owner whose state is a list of words: a command’s payload is a word, which is committed, published whole under
/// `stream/queue/words` and answered with the number of words.
struct EchoMachine: OwnerMachine {
    enum Input: Sendable {
        case say(String)
        case call(OwnerCall<String>)
        case timer(String, MonotonicTime?)
    }
    enum Action: Sendable, Hashable { case heard(String) }
    typealias Query = String
    typealias Timer = String
    typealias Step = TransactionID

    static let owner = ServiceName.queue
    static let observes = ["stream/playback/"]
    static let followsPodcasts = true
    static let topic = Topic.stream(.queue, "words")

    var words = SpeculativeState<[String]>([])
    var committed: [TransactionID] = []
    var refused: [TransactionID] = []
    var observed: [StreamEvent] = []
    private(set) var replacements = 0
    var answers: [String] = []
    var knownPodcasts: Set<PodcastID> = []
    var forgotten: [PodcastID] = []
    var stopped = false
    var hasStopped = true

    mutating func restore(_ record: StoredRecord, now: Moment) throws {
        let word = String(decoding: record.value, as: UTF8.self)
        if word == "unreadable" { throw Failure(.malformed, "Not a word.") }
        words.amend { $0.append(word) }
    }

    func retained(now: Moment) -> [Publication] { [put] }

    func everything() -> [WireChange] { words.current.enumerated().map(Self.change) }

    mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        switch event {
        case .command(let command): return commanded(command)
        case .committed(let id):
            committed.append(id)
            words.committed(id)
        case .refused(let id, _):
            refused.append(id)
            words.refused(id)
        case .answered(let query, let result):
            if case .success(let payload) = result {
                answers.append(query + String(decoding: payload, as: UTF8.self))
            }
        case .observed(let event): observed.append(event)
        case .podcastForgotten(let podcast):
            forgotten.append(podcast)
            return [commit("without \(podcast)")]
        case .timer(let name): return [.perform(.heard("timer \(name)"))]
        case .input(.say(let word)): return [.perform(.heard(word)), .publish([put])]
        case .input(.call(let call)): return [.call(call)]
        case .input(.timer(let timer, let time)): return [.timer(timer, at: time)]
        case .databaseReplaced: replacements += 1
        case .stopping: stopped = true
        }
        return []
    }

    private mutating func commanded(_ command: Command) -> [Effect] {
        switch String(decoding: command.payload, as: UTF8.self) {
        case "count": return [.reply(command.id, .success([UInt8(words.current.count)]))]
        // A report is durable already.
        case "answer alone": return [commit("answer alone", command.id, onRefusal: .success([0]))]
        case "paused": return [commit("paused", command.id, onRefusal: .notSaved("Paused"))]
        case let word: return [commit(word, command.id)]
        }
    }

    private mutating func commit(
        _ word: String, _ request: RequestID? = nil, onRefusal: RefusalAnswer = .failure
    ) -> Effect {
        let id = words.apply { $0.append(word) }
        let count = words.current.count
        return .commit(
            Transaction(
                id, changes: [Self.change(count - 1, word)], publications: [put],
                answering: request.map { ($0, [UInt8(count)]) }, onRefusal: onRefusal))
    }

    private static func change(_ index: Int, _ word: String) -> WireChange {
        var change = WireChange()
        change.put.collection = "word"
        change.put.key = String(index + 1_000)
        change.put.value.append(contentsOf: Array(word.utf8))
        return change
    }

    private var put: Publication {
        Publication(.put, Self.topic, Array(words.current.joined(separator: " ").utf8))
    }
}

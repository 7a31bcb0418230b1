import LockstepClient
import PodcastModel

enum PlayerKey: Sendable, Hashable {
    case character(Character)
    case left, right, up, down, pageUp, pageDown, home, end, enter, delete, tab, backTab, escape
    /// A click on a row of the list, by its index.
    case row(Int)
}

/// The request of a key. Requests to services are absolute, or name their starting point.
enum PlayerIntent: Sendable, Hashable {
    case quit
    case select(QueueEntryID)
    case describe
    case listKeys
    /// The key has no effect, for this reason.
    case say(String)
    /// Shows the chapters instead of the queue, or the queue again.
    case switchList
    /// Selects the chapter with this index.
    case selectChapter(Int)
    case toggle(queue: String)
    case seek(by: Double)
    case chapter(ChapterStep)
    case speed(LevelStep)
    case volume(LevelStep)
    case next(from: QueueEntryID?, queue: String)
    case previous(from: QueueEntryID?, queue: String)
    case play(entry: QueueEntryID, queue: String)
    case remove(entry: QueueEntryID, queue: String)
    case undo(queue: String)
    /// Sets the sleep timer; nil turns it off.
    case sleep(SleepTimerState?)
    case bookmark(episode: EpisodeID, position: Double)
    case answer(alert: AlertID, owner: ServiceName, action: String)
}

extension PlayerIntent {
    /// The request that follows one in flight: steps continue from its target. Nil if it depends on the
    /// shown state, or a held key must not repeat it.
    var behindAnother: PlayerIntent? {
        switch self {
        case .next(_, let queue): .next(from: nil, queue: queue)
        case .previous(_, let queue): .previous(from: nil, queue: queue)
        case .remove: self
        default: nil
        }
    }

    var needsFleet: Bool {
        switch self {
        case .quit, .select, .describe, .listKeys, .say, .switchList, .selectChapter: false
        default: true
        }
    }
}

extension PlayerScreen {
    /// The request of `key` on this screen. The arrows skip by `forward` and `back` seconds.
    func intent(for key: PlayerKey, forward: Double, back: Double) -> PlayerIntent {
        switch key {
        case .character("q"), .character("Q"): return .quit
        case .character(" "): return .toggle(queue: snapshot.queue.name)
        case .character("i"): return .describe
        case .character("?"): return .listKeys
        case .right: return whileLoaded(.seek(by: forward))
        case .left: return whileLoaded(.seek(by: -back))
        case .character("["): return .speed(.down)
        case .character("]"): return .speed(.up)
        case .character("+"), .character("="): return .volume(.up)
        case .character("-"): return .volume(.down)
        case .character("n"): return .next(from: snapshot.queue.current, queue: snapshot.queue.name)
        case .character("p"): return .previous(from: snapshot.queue.current, queue: snapshot.queue.name)
        case .character("u"): return .undo(queue: snapshot.queue.name)
        case .character("<"), .character(","): return whileInChapters(.chapter(.previous))
        case .character(">"), .character("."): return whileInChapters(.chapter(.next))
        case .character("z"): return .sleep(SleepKey.next(after: snapshot))
        case .character("b"):
            return snapshot.episode.map { .bookmark(episode: $0.id, position: snapshot.position) }
                ?? .say("Nothing is loaded.")
        case .character("c"), .character("x"), .delete, .enter, .up, .down, .pageUp, .pageDown, .home, .end,
            .row:
            return listIntent(for: key)
        case .character("j") where hasList: return listIntent(for: .down)
        case .character("k") where hasList: return listIntent(for: .up)
        case .tab, .backTab, .escape: return .say(PlayerHelp.unknown(""))
        case .character(let character):
            guard let digit = character.wholeNumberValue, digit >= 1 else {
                return .say(PlayerHelp.unknown(String(character)))
            }
            let none = snapshot.alerts.isEmpty ? "There is no alert to answer." : "No answer has the digit \(digit)."
            return answer(digit) ?? .say(none)
        }
    }

    private func whileLoaded(_ intent: PlayerIntent) -> PlayerIntent {
        snapshot.episode != nil ? intent : .say("Nothing is loaded.")
    }

    private func whileInChapters(_ intent: PlayerIntent) -> PlayerIntent {
        snapshot.chapters.isEmpty ? whileLoaded(.say("This episode has no chapters.")) : intent
    }

    private func listIntent(for key: PlayerKey) -> PlayerIntent {
        let queue = snapshot.queue.title
        guard hasList else { return .say("This player has no list. ? shows the keys.") }
        switch key {
        case .character("c"): return list == .queue ? whileInChapters(.switchList) : .switchList
        case .enter where shownList == .chapters:
            return selectedChapter.map { .chapter(.index($0)) } ?? .say("No chapter is selected.")
        case .character("x"), .delete, .enter:
            guard shownList == .queue else {
                return .say("Only entries of \(queue) can be removed; press c to show them.")
            }
            guard let entry = selectedIndex.map({ snapshot.queue.entries[$0].id }) else {
                return .say("\(queue) is empty.")
            }
            return key == .enter
                ? .play(entry: entry, queue: snapshot.queue.name) : .remove(entry: entry, queue: snapshot.queue.name)
        case .row(let index) where index == selectedIndex && shownList == .queue: return listIntent(for: .enter)
        default: return moved(by: key) ?? .say("\(queue) is empty.")
        }
    }

    private func moved(by key: PlayerKey) -> PlayerIntent? {
        let isChapters = shownList == .chapters
        let count = isChapters ? snapshot.chapters.count : snapshot.queue.entries.count
        guard count > 0 else { return nil }
        // If there is no selection, the first key selects the beginning.
        let selected = (isChapters ? selectedChapter : selectedIndex) ?? -1
        let index: Int
        switch key {
        case .up: index = selected - 1
        case .down: index = selected + 1
        case .pageUp: index = selected - 10
        case .pageDown: index = selected + 10
        case .home: index = 0
        case .row(let row): index = row
        default: index = count - 1
        }
        let wanted = max(0, min(count - 1, index))
        return isChapters ? .selectChapter(wanted) : .select(snapshot.queue.entries[wanted].id)
    }
}

/// The cycle of the sleep timer’s key: 15, 30 and 60 minutes, the end of the chapter, of the episode, and off.
enum SleepKey {
    private static let steps = [15.0, 30, 60].map { $0 * 60 }

    /// Returns the timer after the current one. A key sets the whole timer, so that two players’ keys
    /// don’t add up.
    static func next(after snapshot: PlayerSnapshot) -> SleepTimerState? {
        switch snapshot.sleep {
        case nil: return .time(remaining: steps[0])
        case .time(let remaining):
            if let step = steps.first(where: { $0 > remaining + 5 }) { return .time(remaining: step) }
            return snapshot.chapter == nil ? .episodes(1) : .endOfChapter
        case .endOfChapter: return .episodes(1)
        case .episodes: return nil
        }
    }
}

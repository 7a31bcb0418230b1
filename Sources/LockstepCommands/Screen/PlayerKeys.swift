import PodcastModel
import WireMessages

/// A key as a player understands it.
enum PlayerKey: Sendable, Hashable {
    case character(Character)
    case left
    case right
    case up
    case down
    case pageUp
    case pageDown
    case home
    case end
    case enter
    case delete
}

/// What a key asks for. Everything is absolute or names what it starts from.
enum PlayerIntent: Sendable, Hashable {
    case quit
    case select(String)
    case describe
    /// Shows the chapters in place of Up Next, or Up Next again.
    case switchList
    /// By its index.
    case selectChapter(Int)
    case setPaused(Bool)
    case start(queue: String)
    case seek(by: Double)
    case chapter(ChapterTarget)
    case speed(LevelExpression)
    case volume(LevelExpression)
    case next(from: String, queue: String)
    case previous(from: String, queue: String)
    case play(entry: String, queue: String)
    case remove(entry: String, queue: String)
    case undo(queue: String)
    case sleep(WireSetSleep)
    case bookmark(episode: String, position: Double)
    case answer(alert: String, owner: String, action: String)
}

extension PlayerScreen {
    /// What `key` asks for here; nil: nothing. `forward` and `back` are the steps of the arrows, in seconds.
    func intent(for key: PlayerKey, forward: Double, back: Double) -> PlayerIntent? {
        switch key {
        case .character("q"), .character("Q"): return .quit
        case .character(" "): return pauseIntent
        case .character("i"): return .describe
        case .right: return snapshot.hasEpisode ? .seek(by: forward) : nil
        case .left: return snapshot.hasEpisode ? .seek(by: -back) : nil
        case .character("["): return .speed(.down)
        case .character("]"): return .speed(.up)
        case .character("+"), .character("="): return .volume(.up)
        case .character("-"): return .volume(.down)
        case .character("n"): return .next(from: snapshot.currentEntry, queue: snapshot.queueName)
        case .character("p"): return .previous(from: snapshot.currentEntry, queue: snapshot.queueName)
        case .character("u"): return .undo(queue: snapshot.queueName)
        case .character("<"), .character(","): return snapshot.parts.isEmpty ? nil : .chapter(.previous)
        case .character(">"), .character("."): return snapshot.parts.isEmpty ? nil : .chapter(.next)
        case .character("c"): return snapshot.parts.isEmpty && list == .queue ? nil : .switchList
        case .character("z"): return .sleep(SleepKey.next(after: snapshot))
        case .character("b"):
            return snapshot.hasEpisode ? .bookmark(episode: snapshot.episodeID, position: snapshot.position) : nil
        case .up, .down, .pageUp, .pageDown, .home, .end: return moved(by: key)
        case .enter:
            if shownList == .chapters { return selectedChapter.map { .chapter(.number($0 + 1)) } }
            return selectedIndex.map { .play(entry: snapshot.entries[$0].id, queue: snapshot.queueName) }
        case .character("x"), .delete:
            guard shownList == .queue else { return nil }
            return selectedIndex.map { .remove(entry: snapshot.entries[$0].id, queue: snapshot.queueName) }
        case .character(let character):
            guard let digit = character.wholeNumberValue, digit >= 1, digit <= answers.count else { return nil }
            let answer = answers[digit - 1]
            return .answer(alert: answer.alert.id, owner: answer.alert.owner, action: answer.action)
        }
    }

    private var pauseIntent: PlayerIntent {
        switch snapshot.status {
        case .playing: .setPaused(true)
        case .loading: .setPaused(!snapshot.staysPaused)
        case .paused: .setPaused(false)
        default: .start(queue: snapshot.queueName)
        }
    }

    private func moved(by key: PlayerKey) -> PlayerIntent? {
        let isChapters = shownList == .chapters
        let count = isChapters ? snapshot.parts.count : snapshot.entries.count
        guard count > 0 else { return nil }
        // Where nothing is selected, the first key leads to the beginning.
        let selected = (isChapters ? selectedChapter : selectedIndex) ?? -1
        let index: Int
        switch key {
        case .up: index = selected - 1
        case .down: index = selected + 1
        case .pageUp: index = selected - 10
        case .pageDown: index = selected + 10
        case .home: index = 0
        default: index = count - 1
        }
        let wanted = max(0, min(count - 1, index))
        return isChapters ? .selectChapter(wanted) : .select(snapshot.entries[wanted].id)
    }
}

/// What the key of the sleep timer leads to: 15, 30 and 60 minutes, the end of the chapter, that of the episode, and off.
enum SleepKey {
    private static let steps = [15.0, 30, 60].map { $0 * 60 }

    /// What comes next after what is set. Each press says it anew, so that two players never add theirs up.
    static func next(after snapshot: PlayerSnapshot) -> WireSetSleep {
        var request = WireSetSleep()
        guard let sleep = snapshot.sleep else {
            request.seconds = steps[0]
            return request
        }
        if let remaining = sleep.remaining {
            if let step = steps.first(where: { $0 > remaining + 5 }) {
                request.seconds = step
            } else if snapshot.chapter != nil {
                request.endOfChapter = true
            } else {
                request.episodes = 1
            }
        } else if sleep.isEndOfChapter {
            request.episodes = 1
        }
        return request
    }
}

extension PlayerSnapshot.Sleep {
    /// The timer that was asked for, as it begins; nil: none.
    init?(_ request: WireSetSleep) {
        switch request.until {
        case .seconds(let seconds): self.init(remaining: seconds)
        case .episodes(let count): self.init(episodes: Int(count))
        case .endOfChapter(let isSet) where isSet: self.init(isEndOfChapter: true)
        case .endOfChapter, nil: return nil
        }
    }
}

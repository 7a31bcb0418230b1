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
    case setPaused(Bool)
    case start
    case seek(by: Double)
    case speed(LevelExpression)
    case volume(LevelExpression)
    case next(from: String)
    case previous(from: String)
    case play(entry: String)
    case remove(entry: String)
    case undo
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
        case .character("n"): return .next(from: snapshot.currentEntry)
        case .character("p"): return .previous(from: snapshot.currentEntry)
        case .character("u"): return .undo
        case .up, .down, .pageUp, .pageDown, .home, .end: return moved(by: key)
        case .enter: return selectedIndex.map { .play(entry: snapshot.entries[$0].id) }
        case .character("x"), .delete: return selectedIndex.map { .remove(entry: snapshot.entries[$0].id) }
        case .character(let character):
            guard let digit = character.wholeNumberValue, digit >= 1, digit <= answers.count else { return nil }
            let answer = answers[digit - 1]
            return .answer(alert: answer.alert.id, owner: answer.alert.owner, action: answer.action)
        }
    }

    private var pauseIntent: PlayerIntent {
        switch snapshot.status {
        case .playing, .loading: .setPaused(true)
        case .paused: .setPaused(false)
        default: .start
        }
    }

    private func moved(by key: PlayerKey) -> PlayerIntent? {
        guard let selected = selectedIndex else { return nil }
        let last = snapshot.entries.count - 1
        let index: Int
        switch key {
        case .up: index = selected - 1
        case .down: index = selected + 1
        case .pageUp: index = selected - 10
        case .pageDown: index = selected + 10
        case .home: index = 0
        default: index = last
        }
        return .select(snapshot.entries[max(0, min(last, index))].id)
    }
}

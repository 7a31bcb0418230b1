import PodcastModel

// The keys of the prompts.

extension LibraryPages {
    /// Handles a key of the open prompt.
    mutating func press(_ key: PlayerKey, in current: Prompt) -> Outcome {
        switch current {
        case .search: return pressSearch(key)
        case .newPlaylist(let text, let ids):
            if key == .escape { return close(saying: "No playlist was created.") }
            guard key == .enter else {
                prompt = .newPlaylist(Self.edited(text, key), adding: ids)
                return .handled
            }
            return create(text, adding: ids)
        case .playlist(let rows, let selected, let ids):
            switch key {
            case .up, .character("k"), .down, .character("j"):
                let step = key == .up || key == .character("k") ? -1 : 1
                prompt = .playlist(rows, selected: max(0, min(rows.count, selected + step)), adding: ids)
            case .row(let index): return pick(rows, index, ids)
            case .enter: return pick(rows, selected, ids)
            case .escape, .character("q"): return close(saying: "Nothing was added.")
            default: break
            }
            return .handled
        case .confirm(_, let command):
            prompt = nil
            return key == .character("y") || key == .character("Y") ? begin(command) : .say("Nothing was changed.")
        case .text(let title, let lines, let top):
            let step: Int
            switch key {
            case .up, .character("k"): step = -1
            case .down, .character("j"): step = 1
            case .pageUp: step = -10
            case .pageDown, .character(" "): step = 10
            case .home: step = -lines.count
            case .end: step = lines.count
            default:
                prompt = nil
                return .handled
            }
            prompt = .text(title: title, lines, top: max(0, min(lines.count - 1, top + step)))
            return .handled
        }
    }

    private mutating func pressSearch(_ key: PlayerKey) -> Outcome {
        guard case .search(let text)? = view?.page else {
            prompt = nil
            return press(key)
        }
        switch key {
        case .escape: prompt = nil
        case .enter: prompt = nil
        case .character, .delete: search(Self.edited(text, key))
        default:
            prompt = nil
            return press(key)
        }
        return .handled
    }

    private static func edited(_ text: String, _ key: PlayerKey) -> String {
        switch key {
        case .character(let character): text.utf8.count < 200 ? text + String(character) : text
        case .delete: String(text.dropLast())
        default: text
        }
    }

    private mutating func close(saying sentence: String) -> Outcome {
        prompt = nil
        return .say(sentence)
    }

    /// Creates a playlist with these episodes.
    mutating func create(_ title: String, adding ids: [EpisodeID]) -> Outcome {
        prompt = nil
        guard !title.allSatisfy(\.isWhitespace) else { return .say("No playlist was created.") }
        return begin(.createPlaylist(title: title, adding: ids))
    }

    /// The row after the playlists creates a new one.
    private mutating func pick(_ rows: [LibraryRow], _ index: Int, _ ids: [EpisodeID]) -> Outcome {
        guard rows.indices.contains(index) else {
            prompt = .newPlaylist("", adding: ids)
            return .handled
        }
        prompt = nil
        return begin(.addToPlaylist(rows[index].id, ids))
    }
}

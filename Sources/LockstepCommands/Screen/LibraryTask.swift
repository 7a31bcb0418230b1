import LockstepClient
import PodcastModel

/// A page of the library in a player.
enum LibraryPage: Sendable, Hashable {
    case inbox, podcasts, playlists, history
    case episodes(PodcastID, title: String)
    case items(String, title: String)
    case search(String)

    /// The name of the page without its contents.
    var title: String {
        switch self {
        case .inbox: "Inbox"
        case .podcasts: "Podcasts"
        case .playlists: "Playlists"
        case .history: "History"
        case .episodes(_, let title), .items(_, let title): title
        case .search: "Search"
        }
    }

    /// The unit of its rows.
    var unit: String {
        switch self {
        case .podcasts: "podcast"
        case .playlists: "playlist"
        case .history: "play session"
        default: "episode"
        }
    }

    /// Whether a change of the fleet’s state may change the rows of the page.
    func isAffected(by change: FleetChange) -> Bool {
        switch (change, self) {
        case (.everything, _), (.connection, _), (.service(.persistence), _): true
        case (.playlist, .playlists): true
        case (.playlist(let id), .items(let shown, _)): id == shown
        case (_, .playlists): false
        case (.episodes(let change), .episodes(let podcast, _)): change.podcast == podcast
        case (.episode, _), (.episodes, _): true
        case (.inbox, .inbox), (.queue, .inbox), (.podcast, .podcasts): true
        case (.player, .history): true
        default: false
        }
    }
}

/// A row of a page of the library.
struct LibraryRow: Sendable, Hashable, Identifiable {
    enum Subject: Sendable, Hashable {
        case episode(EpisodeID), podcast(PodcastID), playlist(String)
    }

    var id: String
    var subject: Subject
    var title: String
    /// The podcast of an episode; empty if the page is about one podcast.
    var detail = ""
    /// The text at the end of the line, such as the length.
    var note = ""
    var isPlayed = false
    var isNew = false

    var episode: EpisodeID? {
        if case .episode(let id) = subject { id } else { nil }
    }

    /// `Part 1, Many parts, 10:00, new`
    var sentence: String {
        [title, detail, note, isPlayed ? "played" : "", isNew ? "new" : ""].filter { !$0.isEmpty }
            .joined(separator: ", ")
    }
}

/// A task of the pages that needs the services.
enum LibraryTask: Sendable, Hashable {
    case load(LibraryPage, PageRequest)
    /// Reads an episode’s details and show notes.
    case notes(EpisodeID)
    case command(LibraryCommand)
}

/// A change that the pages request.
enum LibraryCommand: Sendable, Hashable {
    case play(EpisodeID)
    case add([EpisodeID], next: Bool)
    case download([LibraryEpisode])
    /// Marks the episodes; without a value, as unplayed if all are played, else as played.
    case mark([LibraryEpisode], played: Bool?)
    case markAll(PodcastID, title: String)
    /// Adds the episodes to the favourites, or removes them if all are favourites.
    case favourite([EpisodeID])
    case createPlaylist(title: String, adding: [EpisodeID])
    case addToPlaylist(String, [EpisodeID])
    case removeFromPlaylist(String, [EpisodeID])
    case move(playlist: String, entry: String, to: Int)
    case playPlaylist(String, from: String?, isShuffled: Bool?)
    case undo(LibraryUndo)
}

/// An episode with its title, for the sentence about it.
struct LibraryEpisode: Sendable, Hashable {
    var id: EpisodeID
    var title: String
}

/// The reversal of a command.
enum LibraryUndo: Sendable, Hashable {
    /// A change of a queue. It isn’t undone if another change has followed.
    case queue(String, change: UInt64)
    case playlist(String, change: UInt64)
    /// The marks of one group.
    case marks(group: String)

    /// The undo of a change of a queue or a playlist; nil if its entries weren’t changed.
    init?(_ answer: QueueAnswer) {
        guard let change = answer.undo else { return nil }
        self = answer.playlist.map { .playlist($0.id, change: change) } ?? .queue(answer.queue, change: change)
    }
}

/// The result of a task.
enum LibraryResult: Sendable {
    case pages([PagedList<LibraryRow>.Page], total: Int?)
    case notes(title: String, lines: [String])
    /// A sentence about a command’s effect, and its reversal; nil if nothing was changed.
    case effect(String, undo: LibraryUndo?)
}

import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The playlists whose deletion can be undone: for a day, and the last ones only.
struct DeletedPlaylists: Sendable {
    /// The time for which a playlist is kept, in milliseconds.
    static let keptFor: Int64 = 24 * 3_600_000
    /// The maximum number of playlists that are kept.
    static let limit = 10

    private(set) var playlists: Playlists = [:]

    init(_ playlists: Playlists = [:]) { self.playlists = playlists }

    var everything: [WireChange] { playlists.inOrder.flatMap(\.everything) }

    /// The deleted playlist with this ID or, regardless of case, this title; the one that was deleted last.
    func named(_ text: String) -> Playlist? {
        if let exact = playlists[text] { return exact }
        return playlists.values.filter { $0.isNamed(text) }
            .max { ($0.deletedMilliseconds, $0.name) < ($1.deletedMilliseconds, $1.name) }
    }

    /// Gives the deleted playlist with this ID another one, because a new playlist gets its ID.
    ///
    /// - Parameter isTaken: whether a list has an ID.
    /// - Returns: the changes of the records; empty if no deleted playlist has the ID.
    mutating func release(_ id: String, isTaken: (String) -> Bool) -> [WireChange] {
        guard let playlist = playlists.removeValue(forKey: id) else { return [] }
        var number = 2
        func free() -> String { "\(id.prefix(32))-\(number)" }
        while playlists[free()] != nil || isTaken(free()) { number += 1 }
        let moved = Playlist(free(), copying: playlist)
        playlists[moved.name] = moved
        return playlist.erasure + moved.everything
    }

    mutating func add(_ playlist: Playlist) { playlists[playlist.name] = playlist }

    mutating func remove(_ id: String) -> Playlist? { playlists.removeValue(forKey: id) }

    /// Removes the playlists that aren’t kept any longer, and returns the deletions of their records.
    mutating func removeOld(now: Timestamp) -> [WireChange] {
        let newest = playlists.values.sorted {
            ($0.deletedMilliseconds, $0.name) > ($1.deletedMilliseconds, $1.name)
        }
        let old = newest.enumerated().filter { index, playlist in
            index >= Self.limit || playlist.deletedMilliseconds + Self.keptFor <= now.milliseconds
        }
        for (_, playlist) in old { playlists[playlist.name] = nil }
        return old.flatMap { $0.element.erasure }
    }
}

extension Playlist {
    fileprivate var deletedMilliseconds: Int64 { deletedAt?.milliseconds ?? 0 }
}

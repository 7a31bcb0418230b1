import BusKit
import PodcastModel
import WireMessages

/// The queues and playlists, as rules name them.
struct RuleLists {
    let queues: Set<String>
    let playlists: Playlists

    /// Replaces titles, and names with other case, by the names and IDs of the lists.
    ///
    /// - Parameter own: the ID of the playlist whose rule it is.
    /// - Throws: `notFound`; `ambiguous`; `notApplicable` for a smart playlist, which rules can’t contain;
    ///   `invalidArgument` for a rule that names its own playlist.
    func resolved(_ rule: EpisodeRule, of own: String? = nil) throws(Failure) -> EpisodeRule {
        try rule.replacingLists { name throws(Failure) in
            if name == own {
                throw Failure(.invalidArgument, "The rule of “\(name)” can’t contain “in \(name)”: it names itself.")
            }
            let id = try self.name(of: name)
            guard id != own else {
                throw Failure(.invalidArgument, "The rule of “\(id)” can’t contain “in \(name)”: it names itself.")
            }
            guard let smart = playlists[id]?.smart else { return id }
            throw Failure(
                .notApplicable,
                "“\(name)” is a smart playlist, which a rule can’t contain. Use its rule instead: \(smart.wire.rule)")
        }
    }

    /// Returns the queue’s name or the playlist’s ID for the text after `in`.
    private func name(of text: String) throws(Failure) -> String {
        if queues.contains(text) || playlists[text] != nil { return text }
        let wanted = text.lowercased()
        let named =
            queues.filter { [$0, QueueName.shown($0)].contains { $0.lowercased() == wanted } }
            + playlists.values.filter { $0.isNamed(text) }.map(\.name)
        guard let first = named.first else {
            throw ListID.playlist(text).missing(
                among: (queues.union(playlists.keys)).sorted() + playlists.values.map(\.title).sorted())
        }
        guard named.count == 1 else {
            throw Failure(
                .ambiguous,
                "“\(text)” could be \(named.count) lists. Use an ID: \(named.sorted().joined(separator: ", ")).")
        }
        return first
    }
}

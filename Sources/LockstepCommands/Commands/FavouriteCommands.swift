import ArgumentParser
import LockstepClient
import PodcastModel

struct FavouriteCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "favourite", abstract: "List the favourite episodes, or change them.",
        discussion: "The favourites are the playlist “favourites”, which all commands of `playlist` accept.",
        subcommands: [FavouriteList.self, FavouriteAdd.self, FavouriteRemove.self],
        defaultSubcommand: FavouriteList.self, aliases: ["favorite"])
}

struct FavouriteList: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the favourites.")
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try await output.playlist(PlaylistName.favourites, fleet)
    }
}

struct FavouriteAdd: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "add", abstract: "Add episodes to the favourites.")
    @OptionGroup var wanted: WantedEpisodes
    var options: GlobalOptions { wanted.options }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let found = try await fleet.library.find(wanted.episodes, rule: wanted.rule)
        let id = PlaylistName.favourites
        let answer =
            found.isEmpty
            ? try await fleet.playlists.history(of: id, limit: 1)
            : try await fleet.playlists.add(found.map(\.id), to: id)
        try output.added(answer, found, else: "no episode matches")
    }
}

struct FavouriteRemove: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove episodes from the favourites.",
        discussion: "A number is a row of `lockstep favourite`.")
    @OptionGroup var wanted: WantedEpisodes
    var options: GlobalOptions { wanted.options }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let id = PlaylistName.favourites
        let texts = CommandLineWords.distinct(wanted.episodes)
        if wanted.rule == nil, texts.allSatisfy({ (1...6).contains($0.count) && $0.allSatisfy(\.isWholeNumber) }) {
            // The numbers of rows, as in `playlist remove`.
            let answer = try await fleet.playlists.remove(named: texts, from: id)
            return try output.change(answer, answer.removed, else: "there was nothing to remove")
        }
        let found = try await fleet.library.find(wanted.episodes, rule: wanted.rule)
        let answer =
            found.isEmpty
            ? try await fleet.playlists.history(of: id, limit: 1)
            : try await fleet.playlists.remove(found.map(\.id), from: id)
        let reason =
            found.isEmpty
            ? "no episode matches"
            : "\(Titles.shown(found.map(\.title))) \(found.count == 1 ? "isn’t a favourite" : "aren’t favourites")"
        try output.change(answer, answer.removed, else: reason)
    }
}

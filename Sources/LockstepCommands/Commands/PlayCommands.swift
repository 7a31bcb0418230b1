import ArgumentParser
import LockstepClient
import PodcastModel

struct Play: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Play an episode or an entry of a queue, or resume.",
        discussion: """
            Returns when the episode plays or has failed. A number is the number of an entry in Up Next, as `lockstep queue` \
            lists it, or in the queue given with --queue; %3 is row 3 of the last list that this terminal printed. \
            `lockstep play latest` plays the newest unplayed episode, or the newest one if all are played. While another queue is playing and both have that number, --queue is \
            required.
            """)
    @Argument(help: "An ID, the beginning of one, a part of a title, or an entry’s number.", completion: .episodes)
    var episode: String?
    @Argument(help: "After “latest”: the podcast; all by default.", completion: .podcasts) var podcast: String?
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .player }

    func validate() throws {
        guard podcast == nil || episode == Self.latest else {
            throw ValidationError("Play one episode; put a title with spaces in quotation marks.")
        }
    }

    private static let latest = "latest"

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await ask(fleet)
        if !answer.changed, let player = answer.player, player.isPlaying {
            return try output.report(player, changed: false)
        }
        try output.reportEpisode(of: try await fleet.settled(answer, reportingTo: output))
    }

    private func ask(_ fleet: Fleet) async throws(Failure) -> QueueAnswer {
        guard let episode = episode.map(CommandLineWords.typed) else {
            return try await fleet.queue.play(in: queue.name)
        }
        if episode == Self.latest {
            let found = try await fleet.library.latestEpisode(of: podcast)
            return try await fleet.queue.play(.episodeOfShownQueues(found.id), in: queue.name)
        }
        if episode.utf8.count <= 6, let number = UInt32(episode) {
            return try await fleet.queue.play(.number(number), in: queue.name)
        }
        do throws(Failure) {
            let found = try await fleet.library.findEpisode(episode)
            return try await fleet.queue.play(.episodeOfShownQueues(found.id), in: queue.name)
        } catch {
            guard error.known == .notFound, QueueEntryID(episode) != nil else { throw error }
            do throws(Failure) { return try await fleet.queue.play(.text(episode), in: queue.name) } catch _ {
                throw error
            }
        }
    }
}

extension LibraryClient {
    /// The newest unplayed episode; the newest one if all are played.
    ///
    /// - Throws: `notFound` if there are no episodes.
    fileprivate func latestEpisode(of podcast: String?) async throws(Failure) -> Episode {
        var list = EpisodeList()
        var named: Podcast?
        if let podcast { named = try await findPodcast(typed: podcast) }
        list.podcast = named?.id
        for isUnplayed in [true, false] {
            list.isUnplayed = isUnplayed
            if let episode = try await episodes(in: list, limit: 1).episodes.first { return episode }
        }
        let whose = named.map { DisplayText.quoted($0.title) + " has no episodes" } ?? "There are no episodes"
        throw Failure(.notFound, "\(whose). Check for new ones with `lockstep refresh`.")
    }
}

struct Next: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "next",
        abstract: "Skip to the next entry of the playing queue. A paused player stays paused.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .player }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try await output.report(step: try await fleet.queue.next(in: queue.name), of: fleet)
    }
}

struct Previous: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "previous",
        abstract: "Return to the previous entry of the playing queue. A paused player stays paused.",
        aliases: ["prev"])
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .player }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try await output.report(step: try await fleet.queue.previous(in: queue.name), of: fleet)
    }
}

struct Pause: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "pause", abstract: "Pause playback.")
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.player.pause()
        try output.report(answer.value, changed: answer.changed)
    }
}

struct Resume: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Resume the loaded episode.")
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .player }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.player.resume()
        guard answer.changed || !answer.value.isPlaying else {
            return try output.report(answer.value, changed: false)
        }
        try output.report(try await fleet.settled(answer.value, reportingTo: output))
    }
}

struct Toggle: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "toggle",
        abstract: "Pause if playing, otherwise resume.", aliases: ["play-pause"])
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .player }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.queue.toggle()
        switch answer.player?.status {
        case .paused?, .loading(willPlay: false)?: try output.report(answer.player ?? fleet.state.player)
        default: try output.report(try await fleet.settled(answer, reportingTo: output))
        }
    }
}

struct Stop: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Pause, and close the audio device. The episode stays loaded at its position.")
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.player.stop()
        guard answer.changed else { return try output.report(answer.value, changed: false) }
        let position = answer.value.snapshot.shownPosition
        try output.change(answer.value.json(), "Stopped at \(position); the audio device is closed.")
    }
}

extension Fleet {
    /// Returns the player’s state when the load that a queue decided, or that the player resumed, is settled.
    func settled(_ answer: QueueAnswer, reportingTo output: Output) async throws(Failure) -> PlayerState {
        guard let load = answer.loadID else { return answer.player ?? state.player }
        return try await settled(load, isLoaded: answer.player != nil, reportingTo: output)
    }

    func settled(_ player: PlayerState, reportingTo output: Output) async throws(Failure) -> PlayerState {
        guard let load = player.loadID else { return player }
        return try await settled(load, isLoaded: true, reportingTo: output)
    }

    private func settled(_ load: LoadID, isLoaded: Bool, reportingTo output: Output) async throws(Failure)
        -> PlayerState
    {
        try await settled(load, isLoaded: isLoaded) { player, isSame in
            output.progress(Sentence.attempt(player.snapshot, isSame: isSame))
        }
    }
}

extension Output {
    func report(_ player: PlayerState, changed: Bool = true) throws {
        let sentence: String
        switch player.status {
        case .playing, .paused: sentence = Sentence.beginning(player.snapshot) + "."
        default: sentence = player.sentence
        }
        try change(
            player.json(),
            changed ? sentence : "No change: \(sentence.prefix(1).lowercased())\(sentence.dropFirst())")
    }

    /// Prints the loaded episode after a step to another entry. Each of several steps succeeds, even if a later one
    /// supersedes its load.
    fileprivate func report(step answer: QueueAnswer, of fleet: Fleet) async throws {
        var (player, passed) = (fleet.state.player, "")
        do throws(Failure) { player = try await fleet.settled(answer, reportingTo: self) } catch {
            guard error.known == .revisionMismatch, let load = answer.loadID else { throw error }
            let title = DisplayText.quoted(answer.entries.first?.episode.title ?? "")
            passed = "\(title) was replaced by another load. "
            player = await fleet.successor(of: load)
        }
        try reportEpisode(of: player, after: passed)
    }

    func reportEpisode(of player: PlayerState, after passed: String = "") throws {
        try change(player.json(), passed + player.sentenceWithQueue)
    }
}

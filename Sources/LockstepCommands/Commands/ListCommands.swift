import ArgumentParser
import FeedParsing
import LockstepClient
import PodcastModel

struct ImportPodcasts: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Subscribe to the podcasts of a list (OPML), as other players export it.",
        discussion: """
            Folders become tags. Entries that can’t be imported are listed, and the rest is. A feed that can’t be read \
            now is kept and fetched again later. ^C ends only the command: feeds are still fetched.
            """)
    @Argument(help: "The OPML file; - is standard input.", completion: .file(extensions: ["opml", "xml"]))
    var file: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let path = CommandLineWords.typed(file)
        let name = UserFile.name(path)
        guard let bytes = try UserFile.read(path, limit: OPMLDocument.Limits().bytes) else {
            throw OPMLDocument.tooLong(name)
        }
        let list = ImportList(try OPMLDocument.parse(bytes, named: name))
        guard !list.outlines.isEmpty || !list.problems.isEmpty else {
            return try context.output.change(
                ImportReport(list, [], nil).json, if: false, "", else: "\(name) lists no podcasts")
        }
        try await context.withFleet(observing: .parts([.jobs])) { fleet in
            let output = context.output
            Interruption.say(
                "lockstep: Some podcasts may be missing. Repeat the command to add the rest.\n", clearsLine: false)
            var jobs: [JobID] = []
            var stored = 0
            for part in list.parts {
                do throws(Failure) {
                    jobs.append(try await fleet.feeds.add(part, keep: true))
                } catch {
                    var failure = error
                    failure.message +=
                        " Stored \(stored) of \(NumberText.counted(list.outlines.count, "podcast")); repeat the command to add the rest."
                    throw failure
                }
                stored += part.count
            }
            let results = try await JobFollower(fleet, context).follow(
                jobs, farewell: "The import goes on without this command. `lockstep podcasts` shows what has arrived.")
            try ImportReport(list, jobs, results).print(to: output)
        }
    }
}

/// The podcasts of a list that can be subscribed to, each once, and the entries that can’t be.
struct ImportList {
    /// The maximum size of the texts in one request, in bytes.
    private static let partBytes = 1 << 20

    private(set) var outlines: [FeedsClient.Outline] = []
    private(set) var problems: [OPMLDocument.Problem]

    init(_ document: OPMLDocument) {
        problems = document.problems
        var indices: [String: Int] = [:]
        for outline in document.outlines {
            do throws(Failure) {
                let address = try Self.address(of: outline)
                if let index = indices[address.identity] {
                    let tags = outlines[index].tags
                    outlines[index].tags += outline.tags.filter { tag in
                        !tags.contains { PodcastTag.key($0) == PodcastTag.key(tag) }
                    }
                    if outlines[index].ownTitle.isEmpty {
                        outlines[index].ownTitle = PodcastTitle.fitted(outline.ownTitle)
                    }
                } else {
                    indices[address.identity] = outlines.count
                    outlines.append(
                        FeedsClient.Outline(
                            outline.url, title: PodcastTitle.fitted(outline.title),
                            ownTitle: PodcastTitle.fitted(outline.ownTitle), tags: outline.tags))
                }
            } catch {
                let name = outline.title.isEmpty ? WebAddress.redacted(outline.url) : outline.title
                problems.append(.init(line: outline.line, name: name, reason: error.message))
            }
        }
        problems.sort { $0.line < $1.line }
    }

    private static func address(of outline: OPMLDocument.Outline) throws(Failure) -> WebAddress {
        guard let address = WebAddress(outline.url) else { throw .unusableAddress(outline.url) }
        guard !address.isFile else {
            throw Failure(
                .badURL,
                "A list can’t name local files. If you trust it, use `lockstep subscribe \(ShellText.quoted(address.text))`."
            )
        }
        return address
    }

    /// The outlines in parts that fit into requests.
    var parts: [[FeedsClient.Outline]] {
        var parts: [[FeedsClient.Outline]] = []
        var bytes = 0
        for outline in outlines {
            let size = ([outline.url, outline.title, outline.ownTitle] + outline.tags).reduce(0) { $0 + $1.utf8.count }
            if bytes + size > Self.partBytes || parts.last?.count ?? .max >= RequestSizes.episodes {
                parts.append([])
                bytes = 0
            }
            parts[parts.count - 1].append(outline)
            bytes += size
        }
        return parts
    }
}

/// The outcome of an import.
struct ImportReport {
    private let list: ImportList
    private let jobs: [JobID]
    private let results: [FeedsClient.Result]?

    /// - Parameter results: nil if they aren’t known.
    init(_ list: ImportList, _ jobs: [JobID], _ results: [FeedsClient.Result]?) {
        (self.list, self.jobs, self.results) = (list, jobs, results)
    }

    private func count(_ kind: FeedsClient.Result.Kind) -> Int { results?.count { $0.kind == kind } ?? 0 }

    /// The failures of feeds, and of entries in the list.
    var problems: [String] {
        let entries = list.problems.map { problem in
            let name = problem.name.isEmpty ? "" : "\(DisplayText.quoted(DisplayText.sanitised(problem.name))), "
            return "\(name)line \(problem.line): \(Sentence.stopped(DisplayText.sanitised(problem.reason)))"
        }
        let feeds = (results ?? []).filter { $0.kind == .failed }.map { result in
            "\(FeedResults.name(result)): \(Sentence.stopped(result.failure?.message ?? ""))"
                + (result.isKept ? " It is fetched again later." : "")
        }
        return entries + feeds
    }

    var sentence: String {
        guard results != nil else {
            return "The import has ended; its results aren’t known any more. `lockstep podcasts` lists the podcasts."
        }
        let kept = results?.count { $0.isKept } ?? 0
        let refused = list.problems.count + count(.failed) - kept
        let parts = [
            "Subscribed to \(NumberText.counted(count(.added) + kept, "podcast"))",
            count(.alreadyThere) == 0 ? "" : "\(count(.alreadyThere)) already subscribed",
            kept == 0 ? "" : "\(kept) of them can’t be read now",
            refused == 0 ? "" : "\(NumberText.counted(refused, "entry", "entries")) not imported",
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "; ") + "."
    }

    var json: JSONValue {
        .object([
            "jobs": .array(jobs.map { .string($0.text) }), "podcasts": .unsigned(UInt64(list.outlines.count)),
            "added": .unsigned(UInt64(count(.added))), "alreadyThere": .unsigned(UInt64(count(.alreadyThere))),
            "failed": .unsigned(UInt64(count(.failed))), "results": .array((results ?? []).map(\.json)),
            "problems": .array(
                list.problems.map { problem in
                    .object([
                        "line": .unsigned(UInt64(problem.line)),
                        "name": problem.name.isEmpty ? .null : .text(problem.name), "reason": .text(problem.reason),
                    ])
                }),
        ])
    }

    /// - Throws: exit status 65 if an entry isn’t usable, 75 if a feed couldn’t be read.
    func print(to output: Output) throws {
        if !output.json { for line in problems { Output.report(Failure(.fetchFailed, line), json: false) } }
        if !output.quiet { try output.value(json, lines: [sentence]) }
        guard list.problems.isEmpty else { throw ExitCode(ExitStatus.data.rawValue) }
        guard count(.failed) == 0 else { throw ExitCode(ExitStatus.tryAgain.rawValue) }
    }
}

struct ExportPodcasts: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write a list of your subscriptions (OPML), which other players import.",
        discussion:
            "A podcast is in a folder for each of its tags. Users, passwords and local files aren’t in the list.")
    @Argument(
        help: "The file, which is replaced; standard output by default, or for -.",
        completion: .file(extensions: ["opml"]))
    var file: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let path = file.map(CommandLineWords.typed) ?? "-"
        let outlines = try await context.withFleet { try await $0.library.podcasts().map(FeedsClient.Outline.init) }
        let local = outlines.filter { WebAddress($0.url)?.isFile == true }
        let web = outlines.filter { WebAddress($0.url)?.isFile != true }
        let document = OPMLDocument(
            outlines: web.map { .init($0.url, title: $0.title, ownTitle: $0.ownTitle, tags: $0.tags) })
        let isPrinted = path == "-"
        if !isPrinted || !context.output.json { try UserFile.write(document.text, to: path) }
        for outline in local {
            context.output.progress(
                "\(DisplayText.quoted(DisplayText.sanitised(outline.title))) is left out: it is a local file, \(DisplayText.sanitised(outline.url))."
            )
        }
        let json = JSONValue.object([
            "path": isPrinted ? .null : .text(path), "podcasts": .unsigned(UInt64(web.count)),
            "leftOut": .array(local.map { .text($0.url) }), "opml": isPrinted ? .text(document.text) : .null,
        ])
        guard !isPrinted || context.output.json else { return }
        try context.output.change(json, "Exported \(NumberText.counted(web.count, "podcast")) to \(path).")
    }
}

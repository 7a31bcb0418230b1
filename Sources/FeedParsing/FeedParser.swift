package import PodcastModel

/// The limits that bound the cost of a hostile feed.
package struct FeedLimits: Sendable, Hashable {
    /// The maximum size of a feed, in bytes.
    package var bytes = 32 << 20
    /// The maximum number of episodes; further ones are dropped with a warning.
    package var items = 20_000
    /// The maximum size of the text of one element, in bytes; a longer text is truncated with a warning.
    package var text = 256 << 10
    /// The maximum size of a title, name or address, in bytes; a longer one is truncated.
    package var line = 4_096
    /// The maximum distance of the first element from the start, in bytes.
    package var prologue = 256 << 10

    package init() {}
}

/// Parses a feed as it arrives: RSS 2.0 and its predecessors with the iTunes tags, and Atom.
///
/// Errors with an unambiguous correction are repaired, and reported in the document’s warnings. No file and no network is
/// accessed, no entity of the document’s own is expanded. Memory is bounded by `FeedLimits`.
package struct FeedParser: ~Copyable {
    /// The failure of a web page.
    package static let webPage = FeedReader.webPage

    private let limits: FeedLimits
    private var input: FeedInput
    private let source: XMLPushParser<FeedReader>
    private var received = 0
    /// The first bytes, by which an HTML page is detected.
    private var beginning: [UInt8] = []
    private var failure: Failure?

    package init(limits: FeedLimits = FeedLimits()) {
        self.limits = limits
        source = XMLPushParser(FeedReader(limits: limits))
        input = FeedInput()
    }

    /// Whether the document has begun as a feed.
    package var isFeed: Bool { source.reader.pointee.hasRoot && source.reader.pointee.failure == nil }

    /// Parses the next bytes. Throws as soon as the document can’t be a feed (`notAFeed`) or is too long (`tooLarge`).
    /// Later calls throw the same error.
    package mutating func feed(_ bytes: [UInt8]) throws(Failure) {
        if let failure { throw failure }
        do throws(Failure) {
            try read(bytes)
        } catch {
            failure = explained(error)
            throw explained(error)
        }
    }

    /// Distinguishes an HTML page, whose doctype may be in lower case, from XML.
    private func explained(_ failure: Failure) -> Failure {
        failure.known == .notAFeed && OtherContent(beginning: beginning) == .webPage ? FeedReader.webPage : failure
    }

    private mutating func read(_ bytes: [UInt8]) throws(Failure) {
        received += bytes.count
        beginning += bytes.prefix(max(0, OtherContent.beginning - beginning.count))
        guard received <= limits.bytes else {
            throw Failure(.tooLarge, "The feed is longer than \(limits.bytes >> 20) MiB and wasn’t read.")
        }
        // A chunk is parsed in slices, so that a large invalid one is rejected early and the parser’s buffer stays
        // small.
        for start in stride(from: 0, to: bytes.count, by: 64 << 10) {
            try pass(input.clean(bytes[start..<min(bytes.count, start + 64 << 10)]), isLast: false)
        }
    }

    private mutating func pass(_ text: [UInt8], isLast: Bool) throws(Failure) {
        guard !source.reader.pointee.isComplete else { return }
        source.parse(text, hasKnownEncoding: input.isUTF8, isLast: isLast)
        if let failure = source.reader.pointee.failure { throw failure }
        if input.hasSeenText, !input.beginsWithMarkup {
            throw Failure(.notAFeed, "This isn’t a podcast feed: it is not XML.")
        }
        if !source.reader.pointee.hasRoot, received > limits.prologue {
            throw Failure(.notAFeed, "This isn’t a podcast feed: no XML element in its first \(received >> 10) KiB.")
        }
    }

    /// Ends parsing. Throws `notAFeed` for an empty document, or one that isn’t a feed.
    package consuming func finish() throws(Failure) -> FeedDocument {
        if let failure { throw failure }
        guard received > 0 else { throw Failure(.notAFeed, "This isn’t a podcast feed: it is empty.") }
        do throws(Failure) {
            try pass(input.finish(), isLast: true)
            return try source.reader.pointee.finish(repairs: input.repairs, stoppedAt: source.stoppedAtLine)
        } catch {
            throw explained(error)
        }
    }

    package static func parse(
        _ bytes: some Sequence<UInt8>, limits: FeedLimits = FeedLimits()
    ) throws(Failure) -> FeedDocument {
        var parser = FeedParser(limits: limits)
        try parser.feed(Array(bytes))
        return try parser.finish()
    }
}

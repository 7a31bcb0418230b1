package import PodcastModel

/// The limits against hostile feeds.
package struct FeedLimits: Sendable, Hashable {
    /// The maximum size of a feed, in bytes.
    package var bytes = 32 << 20
    /// The maximum number of episodes; more are left out with a warning.
    package var items = 20_000
    /// The maximum size of the text of one element, in bytes; more is cut with a warning.
    package var text = 256 << 10
    /// The maximum size of a title, name or address, in bytes; a longer one is cut.
    package var line = 4_096
    /// The maximum distance of the first element from the start, in bytes.
    package var prologue = 256 << 10

    package init() {}
}

/// Reads a feed as it arrives: RSS 2.0 and its ancestors with the iTunes tags, and Atom.
///
/// Mistakes whose meaning is clear are repaired, and named among the document's warnings. No file and no network is
/// ever touched, no entity of the document's own is expanded. Memory is bounded by `FeedLimits`.
package struct FeedParser: ~Copyable {
    private let limits: FeedLimits
    private var input: FeedInput
    private let source: XMLPushParser
    private var received = 0
    /// The first bytes, by which an HTML page is recognised.
    private var beginning: [UInt8] = []
    private var failure: Failure?

    package init(limits: FeedLimits = FeedLimits()) {
        self.limits = limits
        source = XMLPushParser(FeedReader(limits: limits))
        input = FeedInput()
    }

    /// Reads the next bytes. Throws as soon as it is certain that this isn’t a feed (`notAFeed`) or is too long (`tooLarge`);
    /// after that it throws the same again.
    package mutating func feed(_ bytes: [UInt8]) throws(Failure) {
        if let failure { throw failure }
        do throws(Failure) {
            try read(bytes)
        } catch {
            failure = explained(error)
            throw explained(error)
        }
    }

    /// Tells a page of HTML, whose doctype may be in lower case, from XML.
    private func explained(_ failure: Failure) -> Failure {
        failure.known == .notAFeed && OtherContent(beginning: beginning) == .webPage ? FeedReader.webPage : failure
    }

    private mutating func read(_ bytes: [UInt8]) throws(Failure) {
        received += bytes.count
        beginning += bytes.prefix(max(0, OtherContent.beginning - beginning.count))
        guard received <= limits.bytes else {
            throw Failure(.tooLarge, "The feed is longer than \(limits.bytes >> 20) MiB and wasn’t read.")
        }
        // Slices, so that a large chunk of garbage is given up early and the parser's own buffer stays small.
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

    /// Ends reading. Throws `notAFeed` for an empty document, or one that isn’t a feed.
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

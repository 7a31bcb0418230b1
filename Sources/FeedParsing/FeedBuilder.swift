import PodcastModel

/// Collects the values of a feed’s elements. If several elements have a value, the best source is used, then the first.
struct FeedBuilder {
    /// The size up to which the length of an enclosure is believed, in bytes.
    private static let largestFile: UInt64 = 1 << 50

    private let limits: FeedLimits
    private var channel = FeedChannel()
    private var items: [FeedEpisode] = []
    private var item: FeedEpisode?
    private var ranks: [FeedTag: Int] = [:]
    private var channelRanks: [FeedTag: Int] = [:]
    private var enclosureRank = 0
    private var transcriptRank = 0
    private var warnings: [FeedWarning] = []
    private var warned: [String: Int] = [:]
    /// The indices of the warnings for the open item.
    private var itemWarnings: Set<Int>?
    private var itemNumber = 0

    init(limits: FeedLimits) {
        self.limits = limits
    }

    mutating func beginItem() {
        item = FeedEpisode()
        itemNumber += 1
        itemWarnings = []
        ranks.removeAll(keepingCapacity: true)
        enclosureRank = 0
        transcriptRank = 0
    }

    mutating func endItem() {
        guard var done = item else { return }
        item = nil
        defer { nameItem(done.title) }
        guard !done.enclosureURL.isEmpty else {
            warn("noAudio", "An item without audio was left out")
            return
        }
        guard items.count < limits.items else {
            warn("tooManyItems", "Episodes beyond the first \(limits.items) were left out")
            return
        }
        if done.title.isEmpty { warn("noTitle", "An episode has no title") }
        // The declared duration is wrong too often to drop chapters that begin after it.
        done.chapters = ChapterMark.normalised(done.chapters)
        items.append(done)
    }

    /// Adds the title of the ended item to its warnings.
    private mutating func nameItem(_ title: String) {
        for index in itemWarnings ?? [] where warnings[index].items.count < FeedWarning.itemLimit {
            warnings[index].items.append(title.isEmpty ? "item \(itemNumber)" : title)
        }
        itemWarnings = nil
    }

    mutating func warn(_ code: String, _ message: String, count: Int = 1) {
        if let index = warned[code] {
            warnings[index].count += count
            itemWarnings?.insert(index)
            return
        }
        guard count > 0 else { return }
        warned[code] = warnings.count
        itemWarnings?.insert(warnings.count)
        warnings.append(FeedWarning(code: code, message: message, count: count))
    }

    mutating func warn(_ repairs: FeedRepairs) {
        warn("wrongBytes", "A byte or character isn’t valid in the encoding", count: repairs.wrongBytes)
        warn("bareAmpersand", "An “&” isn’t escaped as “&amp;”", count: repairs.bareAmpersands)
        warn(
            "undeclaredEntity", "The feed uses a character name of HTML, which XML doesn’t have",
            count: repairs.undeclaredEntities)
    }

    consuming func document() -> FeedDocument {
        if channel.title.isEmpty { warn("noTitle", "The podcast has no title") }
        if items.isEmpty { warn("noEpisodes", "The feed has no episodes") }
        return FeedDocument(channel: channel, items: items, warnings: warnings)
    }

    // MARK: - Elements with text

    mutating func set(_ tag: FeedTag, _ text: [UInt8], inImage: Bool) {
        let bytes = trimmed(text)
        guard !bytes.isEmpty else { return }
        if inImage || tag == .url {
            if tag == .url { setImage(line(bytes), rank: 1) }
        } else if item != nil {
            setItem(tag, bytes)
        } else {
            setChannel(tag, bytes)
        }
    }

    private mutating func setItem(_ tag: FeedTag, _ bytes: ArraySlice<UInt8>) {
        switch tag {
        case .title: put(line(bytes), \.title, .title, rank: 2)
        case .itunesTitle: put(line(bytes), \.title, .title, rank: 1)
        case .content: put(text(bytes), \.description, .description, rank: 3)
        case .description: put(text(bytes), \.description, .description, rank: 2)
        case .summary: put(text(bytes), \.description, .description, rank: 1)
        case .link: put(line(bytes), \.link, .link, rank: 1)
        case .guid: put(line(bytes), \.guid, .guid, rank: 1)
        case .itunesImage: setImage(line(bytes), rank: 2)
        case .published, .updated:
            let text = line(bytes)
            guard let date = InternetDate.parse(text) else {
                return warn("badDate", "A publication date can’t be parsed; the first one is “\(text.prefix(40))”")
            }
            put(date, \.published, .published, rank: tag == .published ? 2 : 1)
        case .duration:
            let text = line(bytes)
            guard let duration = FeedDuration.parse(text) else {
                if FeedDuration.isZero(text) { return }
                return warn("badDuration", "A duration can’t be parsed; the first one is “\(text.prefix(40))”")
            }
            put(duration, \.duration, .duration, rank: 1)
        case .season: put(number(bytes), \.season, .season, rank: 1)
        case .episode: put(number(bytes), \.number, .episode, rank: 1)
        case .explicit: put(isTrue(bytes), \.isExplicit, .explicit, rank: 1)
        default: break
        }
    }

    private mutating func setChannel(_ tag: FeedTag, _ bytes: ArraySlice<UInt8>) {
        switch tag {
        case .title: putChannel(line(bytes), \.title, .title, rank: 2)
        case .itunesTitle: putChannel(line(bytes), \.title, .title, rank: 1)
        case .description, .content: putChannel(text(bytes), \.description, .description, rank: 2)
        case .summary: putChannel(text(bytes), \.description, .description, rank: 1)
        case .link: putChannel(line(bytes), \.link, .link, rank: 1)
        case .language: putChannel(line(bytes), \.language, .language, rank: 1)
        case .itunesAuthor: putChannel(line(bytes), \.author, .author, rank: 2)
        case .author, .name: putChannel(line(bytes), \.author, .author, rank: 1)
        case .newFeedURL: putChannel(line(bytes), \.newFeedURL, .newFeedURL, rank: 1)
        case .itunesImage: setImage(line(bytes), rank: 2)
        case .explicit: channel.isExplicit = isTrue(bytes)
        default: break
        }
    }

    // MARK: - Elements with attributes

    mutating func setImage(_ url: String, rank: Int = 3) {
        let url = cut(url)
        guard !url.isEmpty else { return }
        if item == nil { return putChannel(url, \.imageURL, .itunesImage, rank: rank) }
        put(url, \.imageURL, .itunesImage, rank: rank)
    }

    mutating func setChapters(_ url: String) { put(cut(url), \.chaptersURL, .chapters, rank: 1) }

    /// Adds a transcript of the item: one that is readable as text is preferred to subtitles and other formats.
    mutating func addTranscript(_ url: String, type: String) {
        let url = cut(url)
        guard item != nil, !url.isEmpty else { return }
        let rank =
            switch type.lowercased() {
            case "text/html": 3
            case let type where type.hasPrefix("text/plain"): 4
            case let type where type.hasPrefix("text/"): 2
            default: 1
            }
        guard rank > transcriptRank else { return }
        transcriptRank = rank
        item?.transcriptURL = url
    }

    /// Adds a chapter of the feed itself; one without a start is omitted.
    mutating func addChapter(start: String?, title: String?, url: String?, image: String?) {
        guard let count = item?.chapters.count, count < ChapterMark.limit * 2 else { return }
        guard let start = FeedDuration.position(start ?? "") else {
            return warn("badChapter", "A chapter was left out: its start can’t be parsed")
        }
        let mark = ChapterMark(start: start, title: title ?? "", url: cut(url), imageURL: cut(image))
        item?.chapters.append(mark)
    }

    mutating func addLink(_ address: String, relation: String?, type: String?, length: String?) {
        let address = cut(address)
        switch relation?.lowercased() ?? "" {
        case "enclosure": addEnclosure(url: address, type: type, length: length, isPrimary: true)
        case "self" where item == nil: channel.selfURL = address
        case "", "alternate":
            if item == nil { return putChannel(address, \.link, .link, rank: 1) }
            put(address, \.link, .link, rank: 1)
        default: break
        }
    }

    /// Adds a file of the item: audio is preferred to video, and video to a file without a type; others are ignored.
    mutating func addEnclosure(url: String?, type: String?, length: String?, isPrimary: Bool) {
        let url = cut(url)
        let type = cut(type)
        guard item != nil, !url.isEmpty else { return }
        let kind = type.lowercased()
        var rank = isPrimary ? 1 : 0
        if kind.hasPrefix("audio/") {
            rank += 8
        } else if kind.hasPrefix("video/") {
            rank += 6
        } else {
            guard isPrimary, !kind.hasPrefix("image/") else { return }
            // Some publishers declare audio as text.
            rank += kind.hasPrefix("text/") ? 2 : 4
        }
        guard rank > enclosureRank else { return }
        enclosureRank = rank
        item?.enclosureURL = url
        item?.enclosureType = type
        let bytes = UInt64((length ?? "").filter { $0 != " " && $0 != "," }) ?? 0
        // A larger number isn’t the size of a file.
        item?.enclosureLength = bytes <= Self.largestFile ? bytes : 0
    }

    // MARK: - Values

    private mutating func put<Value>(
        _ value: Value, _ path: WritableKeyPath<FeedEpisode, Value>, _ key: FeedTag, rank: Int
    ) {
        guard item != nil, rank > ranks[key, default: 0] else { return }
        ranks[key] = rank
        item?[keyPath: path] = value
    }

    private mutating func putChannel(
        _ value: String, _ path: WritableKeyPath<FeedChannel, String>, _ key: FeedTag, rank: Int
    ) {
        guard rank > channelRanks[key, default: 0] else { return }
        channelRanks[key] = rank
        channel[keyPath: path] = value
    }

    private func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var slice = bytes[...]
        while let first = slice.first, first <= 0x20 { slice.removeFirst() }
        while let last = slice.last, last <= 0x20 { slice.removeLast() }
        return slice
    }

    /// Decodes a line of limited length, and collapses its white space.
    private func line(_ bytes: ArraySlice<UInt8>) -> String {
        let short = bytes.prefix(limits.line)
        guard zip(short, short.dropFirst()).contains(where: { $1 < 0x20 || $0 == 0x20 && $1 == 0x20 }) else {
            return text(short)
        }
        return text(ArraySlice(short.split { $0 <= 0x20 }.joined(separator: [0x20])))
    }

    /// Decodes text; a character that is truncated at the end is dropped.
    private func text(_ bytes: ArraySlice<UInt8>) -> String {
        var bytes = bytes
        if bytes.count >= limits.line {
            bytes.removeLast(bytes.suffix(3).reversed().prefix { $0 & 0xc0 == 0x80 }.count)
            if let last = bytes.last, last >= 0xc0 { bytes.removeLast() }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func cut(_ text: String?) -> String {
        let text = text ?? ""
        let trimmed = trimmed(Array(text.utf8))
        return trimmed.count == text.utf8.count && trimmed.count <= limits.line ? text : line(trimmed)
    }

    private func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        UInt32(String(decoding: bytes.prefix(12), as: UTF8.self)) ?? 0
    }

    private func isTrue(_ bytes: ArraySlice<UInt8>) -> Bool {
        ["yes", "true", "explicit"].contains(String(decoding: bytes.prefix(12), as: UTF8.self).lowercased())
    }
}

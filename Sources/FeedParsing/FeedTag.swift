/// An element of a feed, independent of its prefix.
enum FeedTag: Hashable {
    case item, channel, image, person
    case title, link, description, content, summary, language, guid, published, updated, enclosure
    case author, url, name, media
    case itunesTitle, itunesAuthor, itunesImage, duration, season, episode, explicit, newFeedURL, chapters
    case transcript, simpleChapters, simpleChapter
    case other

    /// Whether only feeds have this element, so that it ends another one that wasn’t closed.
    var isUnmistakable: Bool {
        switch self {
        case .guid, .published, .enclosure, .duration, .itunesAuthor, .itunesImage, .itunesTitle, .season, .episode,
            .explicit, .chapters, .transcript, .content, .simpleChapters, .simpleChapter:
            true
        default: false
        }
    }

    enum Vocabulary { case plain, itunes, content, atom, podcast, media, dublinCore, podlove, other }

    /// The vocabulary of a namespace, or of a prefix that the document hasn’t declared.
    static func vocabulary(uri: String?, prefix: String?) -> Vocabulary {
        guard let uri, !uri.isEmpty else {
            switch prefix?.lowercased() {
            case nil: return .plain
            case "itunes": return .itunes
            case "content": return .content
            case "atom": return .atom
            case "podcast": return .podcast
            case "media": return .media
            case "dc": return .dublinCore
            case "psc", "sc": return .podlove
            default: return .other
            }
        }
        let name = uri.lowercased()
        if name.hasSuffix("itunes.com/dtds/podcast-1.0.dtd") { return .itunes }
        if name.contains("purl.org/rss/1.0/modules/content") { return .content }
        if name.contains("www.w3.org/2005/atom") || name.contains("purl.org/atom/ns") { return .atom }
        if name.contains("podcastindex.org/namespace") || name.contains("podcastindex-org/podcast-namespace") {
            return .podcast
        }
        if name.contains("search.yahoo.com/mrss") { return .media }
        if name.contains("podlove.org/simple-chapters") { return .podlove }
        if name.contains("purl.org/dc/") { return .dublinCore }
        // RSS has been used with many namespaces.
        if name.contains("purl.org/rss/1.0") || name.contains("backend.userland.com") || name.contains("/rss") {
            return .plain
        }
        return .other
    }

    init(_ name: String, in vocabulary: Vocabulary) {
        let table: [String: FeedTag] =
            switch vocabulary {
            case .plain: Self.plain
            case .itunes: Self.itunes
            case .content: ["encoded": .content]
            case .atom: Self.atom
            case .podcast:
                ["chapters": .chapters, "transcript": .transcript, "season": .season, "episode": .episode]
            case .media: ["content": .media]
            case .dublinCore: ["date": .updated, "creator": .author, "language": .language]
            case .podlove: ["chapters": .simpleChapters, "chapter": .simpleChapter]
            case .other: [:]
            }
        self = table[name.lowercased()] ?? .other
    }

    private static let plain: [String: FeedTag] = [
        "channel": .channel, "item": .item, "entry": .item, "image": .image, "title": .title, "link": .link,
        "description": .description, "language": .language, "guid": .guid, "id": .guid, "pubdate": .published,
        "enclosure": .enclosure, "author": .author, "managingeditor": .author, "url": .url,
    ]
    private static let itunes: [String: FeedTag] = [
        "title": .itunesTitle, "author": .itunesAuthor, "summary": .summary, "image": .itunesImage,
        "duration": .duration, "season": .season, "episode": .episode, "explicit": .explicit,
        "new-feed-url": .newFeedURL,
    ]
    private static let atom: [String: FeedTag] = [
        "entry": .item, "title": .title, "link": .link, "subtitle": .description, "summary": .description,
        "content": .content, "id": .guid, "published": .published, "updated": .updated, "author": .person,
        "name": .name, "logo": .url, "icon": .other,
    ]
}

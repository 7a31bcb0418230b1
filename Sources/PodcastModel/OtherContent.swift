/// Content that servers send instead of audio, detected by its media type or its first bytes.
///
/// Many servers declare audio as `application/octet-stream`, `text/plain` or not at all, so only types that audio never
/// has are listed.
public enum OtherContent: Sendable, Hashable, CaseIterable {
    /// An HTML document, often a login page.
    case webPage
    /// A playlist (M3U, PLS, XSPF or HLS), which contains addresses of audio.
    case playlist
    /// An XML document: a feed, or an error of a storage service.
    case xml
    /// A JSON document: an error of a web service.
    case json
    /// A picture in any format.
    case image
    /// An empty body.
    case nothing

    /// The number of first bytes by which content is detected.
    public static let beginning = 256

    /// Detects the content by a media type, with or without parameters; nil for audio and for possible audio.
    public init?(mediaType: String) {
        let type = mediaType.prefix { $0 != ";" && $0 != " " }.lowercased()
        switch type {
        case "text/html", "application/xhtml+xml": self = .webPage
        case "audio/x-mpegurl", "audio/mpegurl", "application/x-mpegurl", "application/mpegurl",
            "application/vnd.apple.mpegurl", "audio/x-scpls", "audio/scpls", "application/pls+xml",
            "application/xspf+xml":
            self = .playlist
        case "text/xml", "application/xml", "application/rss+xml", "application/atom+xml": self = .xml
        case "application/json": self = .json
        case _ where type.hasPrefix("image/"): self = .image
        default: return nil
        }
    }

    /// Detects the content by its first bytes; nil for audio, for possible audio, and for too few bytes.
    public init?(beginning bytes: some Collection<UInt8>) {
        let text = String(decoding: bytes.prefix(Self.beginning), as: UTF8.self)
            .drop { $0.isWhitespace || $0 == "\u{FEFF}" }.lowercased()
        func begins(_ words: [String]) -> Bool { words.contains(where: text.hasPrefix) }
        if begins(["<!doctype html", "<html", "<head", "<body"]) {
            self = .webPage
        } else if begins(["#extm3u", "[playlist]", "<playlist", "http://", "https://"]) {
            self = .playlist
        } else if begins(["<?xml"]) {
            let isPage = ["<html", "<!doctype html"].contains(where: text.contains)
            self = text.contains("<playlist") ? .playlist : isPage ? .webPage : .xml
        } else if begins(["<rss", "<feed"]) {
            self = .xml
        } else if text.hasPrefix("{"), text.dropFirst().drop(while: \.isWhitespace).hasPrefix("\"") {
            self = .json
        } else {
            return nil
        }
    }

    /// The refusal of such content, with the same message for playback and downloads.
    public func refusal(from host: String, _ code: FailureCode) -> Failure {
        let what =
            switch self {
            case .webPage: "a web page"
            case .playlist: "a playlist"
            case .xml: "an XML document"
            case .json: "a JSON document"
            case .image: "an image"
            case .nothing: "an empty file"
            }
        let advice = self == .webPage ? "; you may have to log in first" : ""
        return Failure(code, "\(host) sent \(what) instead of audio\(advice).")
    }
}

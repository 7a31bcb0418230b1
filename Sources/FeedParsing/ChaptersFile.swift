import FoundationEssentials
package import PodcastModel

/// A chapters file of Podcasting 2.0 (github.com/Podcastindex-org/podcast-namespace, chapters/jsonChapters.md):
/// `{"version": "1.2.0", "chapters": [{"startTime": 0, "endTime": 10.5, "title": "…", "url": "…", "img": "…", "toc": true}]}`.
package enum ChaptersFile {
    /// The maximum size of a file, in bytes.
    package static let limit = 1 << 20

    /// Parses the chapters of a file, and omits invalid chapters and those with `toc: false`.
    ///
    /// - Throws: `malformed` if the bytes aren’t a chapters file.
    package static func parse(_ bytes: [UInt8]) throws(Failure) -> [ChapterMark] {
        do {
            let file = try JSONDecoder().decode(File.self, from: Data(bytes))
            return ChapterMark.normalised(file.chapters.compactMap(\.mark))
        } catch {
            throw Failure(.malformed, "This isn’t a chapters file.")
        }
    }

    private struct File: Decodable {
        var chapters: [Chapter]
    }

    /// A chapter of a file. Many files have numbers as text, or omit fields.
    private struct Chapter: Decodable {
        var mark: ChapterMark?

        private enum Key: String, CodingKey { case startTime, endTime, title, url, img, toc }

        init(from decoder: any Decoder) throws {
            guard let values = try? decoder.container(keyedBy: Key.self) else { return }
            func number(_ key: Key) -> Double? {
                (try? values.decode(Double.self, forKey: key))
                    ?? (try? values.decode(String.self, forKey: key)).flatMap { Double($0) }
            }
            func text(_ key: Key) -> String { (try? values.decode(String.self, forKey: key)) ?? "" }
            guard (try? values.decode(Bool.self, forKey: .toc)) != false,
                let start = number(.startTime).flatMap({ PlaybackPosition(seconds: $0) })
            else { return }
            mark = ChapterMark(
                start: start, end: number(.endTime).flatMap { PlaybackPosition(seconds: $0) }, title: text(.title),
                url: text(.url), imageURL: text(.img))
        }
    }
}

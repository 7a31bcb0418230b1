import OwnerKit
import PodcastModel
import WireMessages

// What the settings mean for the episodes of a podcast.
extension OwnerSettings {
    func speed(of podcast: String) -> PlaybackSpeed {
        PlaybackSpeed(factor: number(.speed, podcast: podcast)) ?? .normal
    }

    /// How their sound is processed.
    func sound(of podcast: String) -> WireSoundState {
        var sound = WireSoundState()
        sound.gain = number(.gain, podcast: podcast)
        sound.trimSilence = isOn(.trimSilence, podcast: podcast)
        sound.boost = isOn(.boost, podcast: podcast)
        sound.normalise = isOn(.normalise, podcast: podcast)
        return sound
    }

    /// How far a skip goes, in seconds; below 0: back.
    func distance(of skip: WireSkip, in podcast: String) throws(Failure) -> Double {
        guard skip.secondsIfUnset.isFinite, skip.secondsIfUnset >= 0 else {
            throw Failure(.invalidArgument, "\(skip.secondsIfUnset) s isn’t a distance to skip.")
        }
        let key = skip.back ? SettingKey.skipBack : .skipForward
        let isSet = own(key, podcast: podcast) != nil || own(key, podcast: "") != nil
        let distance = isSet || skip.secondsIfUnset == 0 ? number(key, podcast: podcast) : skip.secondsIfUnset
        return skip.back ? -distance : distance
    }

    /// The speed as a request sets it: the podcast's own, if it has one, else that for all.
    func setting(speed factor: Double, of podcast: String) throws(Failure) -> WireSetSetting {
        guard let speed = PlaybackSpeed(factor: factor) else {
            let range = PlaybackSpeed.range
            throw Failure(
                .invalidArgument, "The speed goes from \(range.lowerBound) to \(range.upperBound), not \(factor).")
        }
        var setting = WireSetSetting()
        setting.key = SettingKey.speed.rawValue
        setting.podcast = own(.speed, podcast: podcast) == nil ? "" : podcast
        setting.value = String(speed.factor)
        return setting
    }
}

extension EngineSound {
    /// As the stream shows it.
    init(_ wire: WireSoundState) {
        self.init(gain: wire.gain, trimSilence: wire.trimSilence, boost: wire.boost, normalise: wire.normalise)
    }
}

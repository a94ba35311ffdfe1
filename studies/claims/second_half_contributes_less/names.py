NAME = "second_half_contributes_less"
SHARE = "size of a layer's contribution over the state's, by layer"
EFFECT = "relative change of later contributions without the layer, by layer"
TRAINED, BIRTH = "trained", "before training"
